import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
import { payload, payment } from "../system.ts";

const port = 9080;
const admin = "http://127.0.0.1:9070";

/**
 * Restate: a service behind the server's default, durable settings, called through its ingress; steps by `ctx.run`.
 * The server is a process of its own (see ../restate-server.ts) and outlives a killed worker, as a database does.
 *
 * @type {import("../system.ts").Open}
 */
export const open = async ({ url, recovers }, world) => {
  const bench = restate.service({
    name: "bench",
    handlers: {
      ten: async (ctx) => {
        for (let k = 0; k < 10; k++) await ctx.run(`step-${k}`, () => ({ ok: true, value: payload, at: k }));
      },
      one: async (ctx) => ctx.run("only", () => ({ ok: true, value: payload })),
      nap: async (ctx, due) => {
        await ctx.sleep(Math.max(1, due - (await ctx.date.now())));
        return Date.now();
      },
      pay: async (ctx, run) => {
        for (const { step, ms } of payment) await ctx.run(step, () => world.call(run, step, ms));
      },
    },
  });
  await restate.serve({ services: [bench], port });
  if (!recovers) {
    const answer = await fetch(`${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true }),
    });
    if (!answer.ok) throw new Error(`the deployment was refused: ${await answer.text()}`);
  }
  const ingress = clients.connect({ url });
  const calls = ingress.serviceClient({ name: "bench" });
  const sends = ingress.serviceSendClient({ name: "bench" });
  return {
    pulls: false,
    concurrency: async () => {},
    async ten() {
      await calls.ten();
      return {};
    },
    one: () => calls.one(),
    nap: (due) => calls.nap(due),
    pay: (id) => sends.pay(id, clients.rpc.sendOpts({ idempotencyKey: id })),
    close: async () => {},
  };
};
