import {
  type AppendEventRequest,
  BaseSessionService,
  type CreateSessionRequest,
  createSession,
  type DeleteSessionRequest,
  type Event,
  type GetSessionRequest,
  type ListSessionsRequest,
  type ListSessionsResponse,
  mergeStates,
  type Session,
  trimTempState,
} from "@google/adk";
import { Transcript } from "../agent/transcript.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { TapeContext } from "../sdk/context.ts";
import type { Store, StoredValue } from "../store/contract/store.ts";

type State = Record<string, unknown>;
type SessionKey = Pick<DeleteSessionRequest, "appName" | "userId" | "sessionId">;

/** What a session is created with; its events follow in pages. */
interface Head {
  readonly state: State;
  readonly createdAt: number;
}

/** Where sessions can be listed: an open `Tape`, or a store with a tenant. */
export interface ListedValues {
  /** The store. */
  readonly store: Pick<Store, "read">;
  readonly tenant: string;
}

const maxListed = 10_000;
/** What sessions share changes seldom; each conflict means that another writer made progress. */
const maxWrites = 50;

/**
 * Sessions of ADK as values of the tenant, read and written by operations of a run. Two runs that talk in one session at
 * the same time cannot mix: the second one ends with TAPE_VERSION_CONFLICT.
 *
 * @example
 * const runner = new Runner({ appName: "treasury", agent, plugins: [plugin], sessionService: new TapeSessionService(tape) });
 */
export class TapeSessionService extends BaseSessionService {
  readonly #tape: TapeContext;
  readonly #transcripts = new Map<string, Transcript<Event>>();
  /** Sessions that exist, as far as this run knows. */
  readonly #known = new Set<string>();
  /** Events of parallel branches come in any order. They are stored in the order of their branches. */
  #waiting: { readonly key: SessionKey; readonly event: Event }[] = [];

  readonly #listed: (() => ListedValues) | undefined;
  /** Ends the invocation with its next event. */
  #ending: { readonly error: unknown } | undefined;

  /** `listed`: only for `listSessions`, because a run knows values by their keys alone. */
  constructor(tape: TapeContext, listed?: () => ListedValues) {
    super();
    this.#tape = tape;
    this.#listed = listed;
  }

  /** Only what a session service throws leaves the framework's runner as it is. */
  end(error: unknown): void {
    this.#ending ??= { error };
  }

  /** Creates a session. */
  override async createSession({ appName, userId, state = {}, sessionId }: CreateSessionRequest): Promise<Session> {
    const id = sessionId || this.#tape.uuid();
    const key = { appName, userId, sessionId: id };
    const createdAt = this.#tape.now();
    const place = keyOf(key);
    const before = await this.#tape.values.read(place);
    if (before.value != null) await this.#events(key).clear();
    await this.#tape.values.put(
      place,
      { state: plainOf(trimTempState(state)), createdAt } satisfies Head,
      before.version,
    );
    this.#known.add(place);
    return (await this.getSession(key))!;
  }

  /** One session with its events. */
  override async getSession({
    appName,
    userId,
    sessionId,
    config = {},
  }: GetSessionRequest): Promise<Session | undefined> {
    const key = { appName, userId, sessionId };
    const session = await this.#stored(key);
    if (session === undefined) return undefined;
    const { numRecentEvents, afterTimestamp } = config;
    if (numRecentEvents) session.events = session.events.slice(-numRecentEvents);
    if (afterTimestamp) {
      const last = session.events.findLastIndex(({ timestamp }) => timestamp < afterTimestamp);
      session.events = session.events.slice(last + 1);
    }
    const app = (await this.#tape.values.get(appState(appName)))?.value as State | undefined;
    const user = (await this.#tape.values.get(userState(appName, userId)))?.value as State | undefined;
    session.state = mergeStates(app, user, session.state);
    return session;
  }

  /** Needs `listed`. At most 10 000 sessions. */
  override async listSessions(request: ListSessionsRequest): Promise<ListSessionsResponse> {
    const { appName, userId, limit, page, order } = request;
    const found = await this.#tape.sample("sessions", () => this.#headsOf(appName, userId));
    const all = found.map((head) => createSession({ ...head, appName, state: {}, events: [] }));
    const sign = order === "asc" ? 1 : -1;
    if (order) all.sort((a, b) => sign * (a.lastUpdateTime - b.lastUpdateTime) || a.id.localeCompare(b.id));
    const totalItems = all.length;
    const size = limit ?? totalItems;
    const offset = limit !== undefined && page !== undefined ? (page - 1) * size : (request.offset ?? 0);
    const pageOf = size === 0 || limit === undefined ? 1 : Math.floor(offset / size) + 1;
    return {
      sessions: all.slice(offset, limit === undefined ? undefined : offset + size),
      ...{ page: limit !== undefined && page !== undefined ? page : pageOf, limit: size, totalItems },
      totalPages: size === 0 ? 0 : Math.ceil(totalItems / size),
    };
  }

  /** Deletes a session. */
  override async deleteSession({ appName, userId, sessionId }: DeleteSessionRequest): Promise<void> {
    const key = { appName, userId, sessionId };
    const { value, version } = await this.#tape.values.read(keyOf(key));
    if (value == null) return;
    await this.#events(key).clear();
    await this.#tape.values.put(keyOf(key), null, version);
    this.#known.delete(keyOf(key));
  }

  /** Appends an event to a session. */
  override async appendEvent({ session, event: given }: AppendEventRequest): Promise<Event> {
    if (this.#ending !== undefined) throw this.#ending.error;
    const event = await super.appendEvent({ session, event: given });
    if (event.partial) return event;
    session.lastUpdateTime = event.timestamp;
    const { appName, userId, id: sessionId } = session;
    this.#waiting.push({ key: { appName, userId, sessionId }, event });
    if (!event.branch) await this.flush();
    return event;
  }

  /** Stores the events of branches that have ended. The plugin calls it at the end of an invocation. */
  async flush(): Promise<void> {
    const waiting = this.#waiting.toSorted((a, b) => compare(a.event.branch ?? "", b.event.branch ?? ""));
    const ordered = [...waiting.filter(({ event }) => event.branch), ...waiting.filter(({ event }) => !event.branch)];
    this.#waiting = [];
    for (const group of Object.values(Object.groupBy(ordered, ({ key }) => keyOf(key)))) await this.#store(group!);
  }

  async #store(group: readonly { readonly key: SessionKey; readonly event: Event }[]): Promise<void> {
    const { key } = group[0]!;
    if (!this.#known.has(keyOf(key)) && (await this.#stored(key)) === undefined) return;
    await this.#events(key).append(group.map(({ event }) => plainOf(event)));
    const delta = Object.entries(
      plainOf(Object.assign({}, ...group.map(({ event }) => event.actions?.stateDelta))) as State,
    );
    await this.#share(appState(key.appName), delta, "app:");
    await this.#share(userState(key.appName, key.userId), delta, "user:");
  }

  async #share(place: string, delta: readonly (readonly [string, unknown])[], prefix: string): Promise<void> {
    const own = delta
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value]);
    if (own.length === 0) return;
    await this.#again(async () => {
      const { value, version } = await this.#tape.values.read(place);
      await this.#tape.values.put(place, { ...(value as State | undefined), ...Object.fromEntries(own) }, version);
    });
  }

  async #stored({ appName, userId, sessionId: id }: SessionKey): Promise<Session | undefined> {
    const found = await this.#tape.values.get(keyOf({ appName, userId, sessionId: id }));
    if (found?.value == null) return undefined;
    this.#known.add(keyOf({ appName, userId, sessionId: id }));
    const { state, createdAt } = found.value as Head;
    const session = createSession({ id, appName, userId, state: { ...state }, events: [], lastUpdateTime: createdAt });
    for (const event of await this.#events({ appName, userId, sessionId: id }).items()) {
      await super.appendEvent({ session, event: structuredClone(event) });
      session.lastUpdateTime = event.timestamp;
    }
    return session;
  }

  #events(key: SessionKey): Transcript<Event> {
    const place = eventsOf(key);
    const found = this.#transcripts.get(place) ?? new Transcript<Event>(this.#tape, place);
    this.#transcripts.set(place, found);
    return found;
  }

  async #headsOf(app: string, user?: string): Promise<{ id: string; userId: string; lastUpdateTime: number }[]> {
    if (this.#listed === undefined) {
      const why = "listSessions needs the app: new TapeSessionService(tape, () => app)";
      throw new TapeError("TAPE_BAD_INPUT", why, { field: "listed" });
    }
    const of = this.#listed();
    const heads: { id: string; userId: string; lastUpdateTime: number }[] = [];
    for await (const { key, value } of valuesUnder(of, headsUnder(app, user))) {
      if (value == null) continue;
      const [userId, id] = key.split("/").slice(-2).map(decodeURIComponent) as [string, string];
      const [last] = await of.store.read.values(
        of.tenant,
        `${eventsOf({ appName: app, userId, sessionId: id })}/`,
        1,
        undefined,
        "desc",
      );
      const event = (last?.value as { items?: readonly Event[] } | undefined)?.items?.at(-1);
      heads.push({ id, userId, lastUpdateTime: event?.timestamp ?? (value as Head).createdAt });
      if (heads.length === maxListed) break;
    }
    return heads;
  }

  async #again(work: () => Promise<void>): Promise<void> {
    for (let write = 1; ; write++) {
      try {
        return await work();
      } catch (error) {
        if (!isTapeError(error, "TAPE_VERSION_CONFLICT") || write === maxWrites) throw error;
      }
    }
  }
}

const part = (text: string): string => encodeURIComponent(text);
const headsUnder = (app: string, user?: string): string =>
  `adk/${part(app)}/sessions/${user === undefined ? "" : `${part(user)}/`}`;
const keyOf = ({ appName, userId, sessionId }: SessionKey): string =>
  `${headsUnder(appName, userId)}${part(sessionId)}`;
const eventsOf = ({ appName, userId, sessionId }: SessionKey): string =>
  `adk/${part(appName)}/events/${part(userId)}/${part(sessionId)}`;
const appState = (app: string): string => `adk/${part(app)}/state`;
const userState = (app: string, user: string): string => `adk/${part(app)}/user/${part(user)}`;

/** Dates, symbols and prototypes of the framework are not stored. */
const plainOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** All values under a prefix, a page at a time. */
async function* valuesUnder({ store, tenant }: ListedValues, prefix: string): AsyncGenerator<StoredValue> {
  for (let after: string | undefined; ; ) {
    const page = await store.read.values(tenant, prefix, undefined, after);
    yield* page;
    if (page.more !== true) return;
    after = page.at(-1)!.key;
  }
}
