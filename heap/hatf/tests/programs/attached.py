# Allocates on request, like attached.c. Sizes end in 077.
import ctypes
import json
import sys
import threading

damaged = 0


def work():
    global damaged
    for _ in range(10):
        block = ctypes.create_string_buffer(1077)
        table = json.loads(json.dumps({str(i): [i] * 10 for i in range(100)}))
        damaged += table["7"] != [7] * 10 or len(block) != 1077


print("ready", flush=True)
for line in sys.stdin:
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done", flush=True)
print(damaged, "damaged")
sys.exit(7)
