"""A proxy between devices and the cluster that harms single notifications, to show that a load run finds it.

It prints the URL of its devices, then passes everything on, but for every --each th notification:

  none      is passed on
  lose      is dropped, and the cluster gets an acknowledgement of it
  repeat    is sent twice
  delay     is sent after --seconds; others overtake it
  reorder   is sent after the next one of its connection
"""
import argparse
import asyncio
import json

import websockets

PROTOCOL = websockets.Subprotocol("carillon.v1")


class Proxy:
    def __init__(self, arguments):
        self.url, self.fault, self.each, self.seconds = arguments.devices, arguments.fault, arguments.each, arguments.seconds
        self.count = self.harmed = 0
        self.tasks = set()

    def is_next(self):
        self.count += 1
        return self.fault != "none" and self.count % self.each == 0

    async def serve(self, device):
        async with websockets.connect(self.url, subprotocols=[PROTOCOL], max_size=None) as cluster:
            passing = [asyncio.create_task(self.up(device, cluster)), asyncio.create_task(self.down(cluster, device))]
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            for task in passing:
                task.cancel()
            code = cluster.close_code or 1000
            await device.close(code if 3000 <= code < 5000 else 1000)

    async def up(self, device, cluster):
        async for text in device:
            await cluster.send(text)

    async def down(self, cluster, device):
        held = None
        async for text in cluster:
            frame = json.loads(text)
            if frame["type"] != "notify":
                await device.send(text)
                continue
            if held is not None:
                await device.send(text)
                await device.send(held)
                held = None
                continue
            if not self.is_next():
                await device.send(text)
                continue
            self.harmed += 1
            print(json.dumps({"harmed": frame["id"], "fault": self.fault}), flush=True)
            if self.fault == "lose":
                await cluster.send(json.dumps({"type": "ack", "deliveries": [frame["delivery"]]}))
            elif self.fault == "repeat":
                await device.send(text)
                await device.send(text)
            elif self.fault == "delay":
                task = asyncio.create_task(self.later(device, text))
                self.tasks.add(task)
            elif self.fault == "reorder":
                held = text

    async def later(self, device, text):
        await asyncio.sleep(self.seconds)
        await device.send(text)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", required=True, metavar="URL", help="where the cluster's devices connect")
    parser.add_argument("--fault", required=True, choices=["none", "lose", "repeat", "delay", "reorder"])
    parser.add_argument("--each", type=int, default=70)
    parser.add_argument("--seconds", type=float, default=35)
    proxy = Proxy(parser.parse_args())
    async with websockets.serve(proxy.serve, "127.0.0.1", 0, subprotocols=[PROTOCOL], max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        print(json.dumps({"devices": f"ws://127.0.0.1:{port}/v1/device"}), flush=True)
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
