// What the examples of the API reference use and do not show: an app, a bank, a few definitions. Types only; nothing runs.
import type { createServer as createHttpServer } from "node:http";
import type { DatabaseSync } from "node:sqlite";
import type { Pool } from "pg";
import type {
  Connector,
  Effect,
  GateDefinition,
  Lease,
  LeaseKeeper,
  NatsConsumer,
  NatsPublisher,
  ObjectDefinition,
  ObjectSelf,
  Observation,
  PayloadCodec,
  PayloadContext,
  ReplyGate,
  RunHandle,
  Runner,
  RunView,
  Shard,
  Store,
  StreamDefinition,
  Tape,
  TapeContext,
  TapeEvent,
  Workflow,
} from "../../../src/exports/index.ts";
import type { Handler, runWakeUps, Waker } from "../../../src/exports/push.ts";

export interface Receipt {
  readonly id: string;
}
export interface Order {
  readonly id: string;
}
interface Payment {
  readonly invoice: string;
  readonly amount: number;
}
interface Call {
  readonly idempotencyKey: string;
  readonly signal?: AbortSignal;
}

export declare const app: Tape;
export declare const tape: TapeContext<{ readonly done: number }>;
export declare const state: { readonly done: number };
export declare const runner: Runner;
export declare const store: Store;
export declare const lease: Lease;
export declare const keeper: LeaseKeeper;
export declare const shard: Shard;
export declare const signal: AbortSignal;

export declare const hello: Workflow<{ readonly name: string }, string>;
export declare const treasury: Workflow<{ readonly day: string }, string>;
export declare const resize: Workflow<string, string>;
export declare const parse: Workflow<string, number>;
export declare const ship: Workflow<Order, void>;
export declare const pay: Effect<Payment, Receipt>;
export declare const wire: Effect<Payment, Receipt>;
export declare const cfo: GateDefinition<{ readonly approved: boolean }>;
export declare const add: ReplyGate<{ readonly sku: string }, { readonly total: number }>;
export declare const counter: ObjectDefinition<
  number,
  { readonly add: (tape: TapeContext, self: ObjectSelf<number>, by: number) => Promise<number> }
>;
export declare const tokens: StreamDefinition<string>;
export declare const run: RunHandle<string> & RunView;
export declare const bankConnector: Connector;

/** The client library of an upstream. */
export declare const bank: {
  wire(payment: Payment, call: Call): Promise<Receipt>;
  find(businessKey: string | undefined): Promise<Receipt | undefined>;
  reverse(id: string, call: Call): Promise<void>;
};
export declare const sdk: typeof bank;
export declare const ledger: { insert(events: readonly TapeEvent[]): Promise<void> };
export declare const printer: { print(invoice: string): Promise<Receipt> };
export declare const observe: () => Promise<Observation<Receipt>>;
export declare const invoice: string;
export declare const receipt: Receipt;

export declare const files: readonly string[];
export declare const images: readonly string[];
export declare const shops: readonly { readonly id: string }[];
export declare const sandboxes: readonly { readonly id: string }[];
export declare function load(shop: { readonly id: string }): Promise<string>;
export declare function ask(question: string): Promise<string>;
export declare function model(prompt: string, signal: AbortSignal): AsyncIterable<string>;
export declare const prompt: string;
export declare function fetchRate(signal?: AbortSignal): Promise<number>;
export declare function sendInvoice(options: { readonly webhook: string }): Promise<void>;
export declare function enough(): Promise<boolean>;
export declare function book(): Promise<void>;
export declare function insure(): Promise<void>;
export declare function indexPages(): Promise<void>;
export declare function sweep(of?: unknown): Promise<void>;
export declare function print(text: string): void;
export declare function send(event: unknown): void;
export declare function put(what: unknown, token: bigint): Promise<void>;
export declare function isSignedIn(request: Request): boolean;

export declare const pool: Pool;
export declare const client: {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
};
export declare const database: DatabaseSync;
export declare const mysql: {
  beginTransaction(): Promise<void>;
  query(text: string): Promise<void>;
  commit(): Promise<void>;
};
export declare function raiseOn(connection: unknown, scope: string, token: bigint): Promise<bigint>;
/** An S3 bucket, behind a few functions. */
export declare const bucket: {
  upload(name: string, body: AsyncIterable<Uint8Array>): Promise<void>;
  sha256(name: string): Promise<string | undefined>;
  download(name: string): Promise<AsyncIterable<Uint8Array> | undefined>;
};
export declare const balance: number;
export declare const id: string;
export declare const report: { readonly total: number };
export declare const body: string;
export declare const request: Request;

export declare const consumer: NatsConsumer & Parameters<typeof runWakeUps>[0];
export declare function connect(): Promise<unknown>;
export declare function jetstream(connection: unknown): NatsPublisher;
export declare const serviceAccount: string;
export declare const handler: Handler;
export declare const createServer: typeof createHttpServer;
export declare const waker: Waker;
export declare const url: string;
export declare const secret: string;
export declare const token: string;
export declare const text: string;
export declare const lastCursor: string;
export declare const codec: PayloadCodec;
export declare const context: PayloadContext;
export declare const cause: Error;
export declare const key: Uint8Array;
export declare const keys: Readonly<Record<string, Uint8Array>>;
export declare const hashKey: Uint8Array;
