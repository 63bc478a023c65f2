import time

log = []


def remember(number):
    log.append("x" * 2000 + str(number))


for number in range(400):
    for entry in range(4):
        remember(number * 4 + entry)
    time.sleep(0.004)
