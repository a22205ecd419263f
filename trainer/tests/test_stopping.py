# SPDX-License-Identifier: MIT-0
"""Signals as a wish to stop, and progress for people and for machines."""

import io
import json
import os
import signal
import threading

import pytest

from lingoss.progress import Progress
from lingoss.stopping import StopRequest


def test_a_signal_is_noted_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopRequest() as stop:
        assert not stop
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop
        assert stop.signal_number == signal.SIGTERM
        stop.raise_if_interrupted()  # only a Ctrl-C is passed on
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_an_elastic_agent_s_signal_means_the_same_and_further_ones_change_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with StopRequest() as stop:
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        assert stop
        stop.raise_if_interrupted()
    assert signal.getsignal(signal.SIGUSR1) == before
    assert capsys.readouterr().err.count("stopping after this step") == 1
    with StopRequest(signals=[signal.SIGTERM], tell=False) as stop:  # another's handler for SIGUSR1 stays
        assert signal.getsignal(signal.SIGUSR1) == before
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop
    assert capsys.readouterr().err == ""


def test_a_second_ctrl_c_does_not_wait() -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stop.raise_if_interrupted()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    found = []

    def work() -> None:
        with StopRequest():
            found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


def test_progress_is_json_lines_in_a_log() -> None:
    stream = io.StringIO()
    with Progress("sft", total=5, unit="steps", done=2, stream=stream) as progress:
        progress.advance(loss=1.5)
        progress.advance(2, loss=float(1))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["task"], line["done"], line["total"], line["unit"], line["loss"]) for line in lines] == [
        ("sft", 3, 5, "steps", 1.5),
        ("sft", 5, 5, "steps", 1.0),
    ]


def test_progress_is_a_bar_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with Progress("generate", total=4, unit="samples", stream=stream) as progress:
        progress.advance(3, tokens_per_s=101.25)
    assert "generate" in stream.getvalue()
    assert "3/4" in stream.getvalue()
    assert "tokens_per_s 101.2" in stream.getvalue()
    assert "{" not in stream.getvalue()
