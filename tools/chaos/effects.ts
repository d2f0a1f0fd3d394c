import { httpConnector } from "../../src/connector/http/connector.ts";
import type { Connector, ConnectorContext } from "../../src/sdk/connector.ts";
import { type Effect, type EffectContext, effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import type { EffectArgs } from "./world.ts";

/** A request is aborted after this long; the observation that follows settles it. */
const timeout = "2s";
const retry = { attempts: 20, base: "50ms", cap: "500ms" } as const;
/** After an observation the world rejects lower tokens, so absence needs no delay. */
const settleDelay = 0;

export type WorldEffect = Effect<EffectArgs, string>;
type Semantics = "non_idempotent" | "idempotent" | "read";
type Verb = "do" | "once";

/** Makes a connector to the world for an effect; `verb` is what the world does with its requests. */
export type Connect = (name: string, verb: string) => Connector;

/** `sending` is called when a request is about to be sent; the lease is not checked after that. */
export const connectTo =
  (world: string, worker: string, sending: () => void): Connect =>
  (name, verb) =>
    httpConnector(name, {
      url: world,
      allow: ["127.0.0.1"],
      headers: { "x-worker": worker },
      request: (args: EffectArgs) => {
        sending();
        return { url: `${verb}/${name}`, body: args };
      },
      observe: {
        request: (args: EffectArgs) => ({ url: `observe/${name}`, body: args }),
        read: ({ status, body }: { status: number; body: unknown }) => {
          if (status === 200) return outcome.confirmed(String(body));
          return status === 404 ? outcome.absent({ final: true }) : outcome.inconclusive(`status ${status}`);
        },
      },
    });

const contextFor =
  (name: string) =>
  (fx: EffectContext): ConnectorContext => ({ ...fx, effect: name });

const businessKey = (args: EffectArgs): string => `${args.run}/${args.what}${args.n}`;

function compensateBy(connect: Connect, name: string, verb: Verb) {
  const connector = connect(name, verb);
  const fx = contextFor(name);
  return {
    semantics: verb === "do" ? ("non_idempotent" as const) : ("idempotent" as const),
    run: (args: EffectArgs, _result: string, at: EffectContext) => connector.dispatch(args, fx(at)),
    observe: ({ args }: { args: EffectArgs }, at: EffectContext) => connector.observe!(args, fx(at)),
  };
}

/** Effects of every semantics, sent by the driver or by the outbox, some with a compensation. */
export function worldEffects(connect: Connect) {
  const connectors: Connector[] = [];
  const compensationOf = (name: string, verb: Verb | undefined) =>
    verb === undefined ? {} : { compensate: compensateBy(connect, `un${name}`, verb) };
  const inline = (name: string, verb: string, semantics: Semantics, compensation?: Verb): WorldEffect => {
    const connector = connect(name, verb);
    const fx = contextFor(name);
    const observed =
      semantics === "non_idempotent"
        ? { businessKey, observe: (args: EffectArgs, at: EffectContext) => connector.observe!(args, fx(at)) as never }
        : {};
    return effect<EffectArgs, string>(name, async (args, at) => String(await connector.dispatch(args, fx(at))), {
      ...{ semantics, timeout, retry, settleDelay },
      ...observed,
      ...compensationOf(name, compensation),
    });
  };
  const outbox = (name: string, verb: string, semantics: Semantics, compensation?: Verb): WorldEffect => {
    connectors.push(connect(name, verb));
    return effect<EffectArgs, string>(name, {
      connector: name,
      ...{ semantics, timeout, retry, settleDelay },
      ...(semantics === "non_idempotent" ? { businessKey } : {}),
      ...compensationOf(name, compensation),
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
