import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
import { payload } from "../system.ts";
import { reporter, width } from "./report.mjs";

/** Restate: one invocation with many steps, which then sleeps. The server calls it again when its process is back. */
const port = 9081;
const { url, recovers } = JSON.parse(process.argv[2] ?? "{}");
const report = reporter({
  fill: (id, count) =>
    clients
      .connect({ url })
      .serviceSendClient({ name: "endless" })
      .long(count, clients.rpc.sendOpts({ idempotencyKey: id })),
  close: async () => {},
});
const endless = restate.service({
  name: "endless",
  handlers: {
    long: async (ctx, count) => {
      report.entered(count);
      for (let done = 0; done < count; done += width) {
        const step = (_, k) => ctx.run("step", () => ({ ok: true, value: payload, at: done + k }));
        await restate.RestatePromise.all(Array.from({ length: Math.min(width, count - done) }, step));
      }
      report.live(count);
      await ctx.sleep(86_400_000);
    },
  },
});
await restate.serve({ services: [endless], port });
if (!recovers) {
  const answer = await fetch("http://127.0.0.1:9070/deployments", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true }),
  });
  if (!answer.ok) throw new Error(`the deployment was refused: ${await answer.text()}`);
}
report.ready();
