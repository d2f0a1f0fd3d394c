// Only compiled, never executed: what connectors accept and reject.
import { functionConnector } from "../../src/connector/function.ts";
import { httpConnector } from "../../src/connector/http/connector.ts";
import type { Connector } from "../../src/sdk/connector.ts";
import { type Effect, effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import { inferred } from "../types/same.ts";

interface Wire {
  readonly invoice: string;
}
interface Receipt {
  readonly id: number;
}

const bank = functionConnector("bank", {
  dispatch: async (wire: Wire, fx): Promise<Receipt> => ({ id: wire.invoice.length + fx.effect.length }),
  observe: async (wire) => (wire.invoice === "" ? outcome.absent() : outcome.confirmed({ id: 1 })),
  compensate: (wire, receipt, fx) => `${wire.invoice} ${receipt.id} ${fx.key}`,
});
inferred(bank)<Connector>();

const wire = effect<Wire, Receipt>("bank.wire", {
  connector: "bank",
  dispatch: "outbox",
  businessKey: (args) => args.invoice,
  compensate: (args, receipt) => `${args.invoice} ${receipt.id}`,
});
inferred(wire)<Effect<Wire, Receipt>>();
const fromOptions = effect("bank.wire", { connector: "bank", businessKey: (args: Wire) => args.invoice });
inferred(fromOptions)<Effect<Wire, unknown>>();
createRunner({ workflows: [], effects: [wire], connectors: [bank] });

functionConnector("bank", {
  dispatch: async (_: Wire): Promise<Receipt> => ({ id: 1 }),
  // @ts-expect-error an observer confirms what dispatch returns
  observe: () => outcome.confirmed({ id: "1" }),
});
functionConnector("bank", {
  dispatch: async (_: Wire): Promise<Receipt> => ({ id: 1 }),
  // @ts-expect-error the result of dispatch has no sum
  compensate: (_, receipt) => receipt.sum,
});
// @ts-expect-error a connector needs dispatch
functionConnector("bank", {});
// @ts-expect-error an effect by a connector is never inline
effect<Wire, Receipt>("bank.wire", { connector: "bank", dispatch: "inline" });
// @ts-expect-error an effect has a body or a connector, not both
effect("bank.wire", async (_: Wire) => 1, { connector: "bank" });
// @ts-expect-error expects the name of a connector
effect<Wire, Receipt>("bank.wire", { connector: bank });
httpConnector("bank", {
  request: (args: Wire) => ({ url: args.invoice }),
  // @ts-expect-error there are four verdicts
  judge: () => "fine",
});
httpConnector("bank", {
  // @ts-expect-error no such method
  request: () => ({ method: "CONNECT", url: "x" }),
});
createRunner({
  workflows: [],
  // @ts-expect-error an effect is not a connector
  connectors: [wire],
});
