#!/usr/bin/env python3
"""pingpong.py [naps]: two processes hand a byte to each other, as fast as they can. With naps, the first one sleeps 3 ms after each 300 times,
and of a hundred naps one is of 500 ms."""
import os
import sys
import time


def answer(ask, answers):
    while os.read(ask, 1):
        os.write(answers, b"x")
    os._exit(0)


def main():
    naps = sys.argv[1:] == ["naps"]
    ask, answers = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(ask[1])
        os.close(answers[0])
        answer(ask[0], answers[1])
    os.close(ask[0])
    os.close(answers[1])
    n = 0
    while True:
        for _ in range(300):
            os.write(ask[1], b"x")
            if not os.read(answers[0], 1):
                return
        if naps:
            time.sleep(0.003 if n % 100 else 0.5)
            n += 1


main()
