import { httpConnector } from "../../src/connector/http/connector.ts";
import type { Connector, ConnectorContext } from "../../src/sdk/connector.ts";
import { type Effect, type EffectContext, effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import type { Ask } from "./world.ts";

/** A request is aborted after this long; the observation that follows settles it. */
const timeout = "2s";
const retry = { attempts: 20, base: "50ms", cap: "500ms" } as const;
/** Once observed, the world refuses lower tokens, so absence needs no delay. */
const settleDelay = 0;

export type WorldEffect = Effect<Ask, string>;
type Semantics = "non_idempotent" | "idempotent" | "read";
type Verb = "do" | "once";

/** Makes a connector to the world for an effect; `verb`: what the world does with its requests. */
export type Connect = (name: string, verb: string) => Connector;

/** `sending` is called when a request is about to be sent: nothing checks the lease after it. */
export const connectTo =
  (world: string, worker: string, sending: () => void): Connect =>
  (name, verb) =>
    httpConnector(name, {
      url: world,
      allow: ["127.0.0.1"],
      headers: { "x-worker": worker },
      request: (ask: Ask) => {
        sending();
        return { url: `${verb}/${name}`, body: ask };
      },
      observe: {
        request: (ask: Ask) => ({ url: `look/${name}`, body: ask }),
        read: ({ status, body }: { status: number; body: unknown }) => {
          if (status === 200) return outcome.confirmed(String(body));
          return status === 404 ? outcome.absent({ final: true }) : outcome.inconclusive(`status ${status}`);
        },
      },
    });

const contextFor =
  (name: string) =>
  (fx: EffectContext): ConnectorContext => ({ ...fx, effect: name });

const businessKey = (ask: Ask): string => `${ask.run}/${ask.what}${ask.n}`;

function compensateBy(connect: Connect, name: string, verb: Verb) {
  const connector = connect(name, verb);
  const fx = contextFor(name);
  return {
    semantics: verb === "do" ? ("non_idempotent" as const) : ("idempotent" as const),
    run: (ask: Ask, _result: string, at: EffectContext) => connector.dispatch(ask, fx(at)),
    observe: ({ args }: { args: Ask }, at: EffectContext) => connector.observe!(args, fx(at)),
  };
}

/** Effects of every semantics, sent by the driver or by the outbox, some with a compensation. */
export function worldEffects(connect: Connect) {
  const connectors: Connector[] = [];
  const compensation = (name: string, verb: Verb | undefined) =>
    verb === undefined ? {} : { compensate: compensateBy(connect, `un${name}`, verb) };
  const inline = (name: string, verb: string, semantics: Semantics, undo?: Verb): WorldEffect => {
    const connector = connect(name, verb);
    const fx = contextFor(name);
    const observed =
      semantics === "non_idempotent"
        ? { businessKey, observe: (ask: Ask, at: EffectContext) => connector.observe!(ask, fx(at)) as never }
        : {};
    return effect<Ask, string>(name, async (ask, at) => String(await connector.dispatch(ask, fx(at))), {
      ...{ semantics, timeout, retry, settleDelay },
      ...observed,
      ...compensation(name, undo),
    });
  };
  const outbox = (name: string, verb: string, semantics: Semantics, undo?: Verb): WorldEffect => {
    connectors.push(connect(name, verb));
    return effect<Ask, string>(name, {
      connector: name,
      ...{ semantics, timeout, retry, settleDelay },
      ...(semantics === "non_idempotent" ? { businessKey } : {}),
      ...compensation(name, undo),
    });
  };
  const effects = {
    pay: inline("pay", "do", "non_idempotent"),
    mail: inline("mail", "once", "idempotent"),
    rate: inline("rate", "read", "read"),
    wire: outbox("wire", "do", "non_idempotent"),
    post: outbox("post", "once", "idempotent"),
    quote: outbox("quote", "read", "read"),
    book: inline("book", "do", "non_idempotent", "do"),
    reserve: outbox("reserve", "once", "idempotent", "once"),
    rent: outbox("rent", "do", "non_idempotent", "do"),
    charge: inline("charge", "no", "idempotent"),
  };
  return { effects, connectors };
}

export type WorldEffects = ReturnType<typeof worldEffects>["effects"];
