import type { Bug } from "../bug.ts";

export const objectBugs: readonly Bug[] = [
  {
    name: "state read before the slot is had",
    planted: "the caller reads the state and hands it to the handler with its input",
    why: "One read fewer in the handler: the caller is at the store anyway. The calls before it have not run yet.",
    patches: [
      {
        file: "host/objects.ts",
        find: "    const start = (input?: unknown): Promise<RunHandle<unknown>> => app.start(of, { key, input }, options);\n",
        replace:
          "    const start = async (input?: unknown): Promise<RunHandle<unknown>> => {\n      const { version = 0, value } = (await app.store.read.value(app.tenant, stateKey(name, key))) ?? {};\n      return app.start(of, { key, input, found: { version, value } } as never, options);\n    };\n",
      },
      {
        file: "sdk/object.ts",
        find: "    const body = async (tape: TapeContext, { key, input }: HandlerInput): Promise<unknown> =>\n      run(tape, await loadState(tape, name, key, initial), input as never);\n",
        replace:
          "    const body = async (tape: TapeContext, { key, input, found }: HandlerInput & { found?: never }): Promise<unknown> =>\n      run(tape, await loadState(tape, name, key, initial, found), input as never);\n",
      },
      {
        file: "sdk/object.ts",
        find: "async function loadState<S>(tape: TapeContext, name: string, key: string, initial: () => S): Promise<ObjectSelf<S>> {",
        replace:
          "async function loadState<S>(tape: TapeContext, name: string, key: string, initial: () => S, early?: never): Promise<ObjectSelf<S>> {",
      },
      {
        file: "sdk/object.ts",
        find: "  const found = await tape.values.read(valueKey);\n",
        replace: "  const found: { version: number; value: unknown } = early ?? (await tape.values.read(valueKey));\n",
      },
    ],
    detectedBy: ["objectsAreLinearizable"],
    kind: "with objects",
    within: 50,
  },
  {
    name: "the key is free while a handler sleeps",
    planted: "the queue of an object counts running handlers, so that a parked one gives up its key",
    why: "Queues count running work by default, and a sleeping handler runs nothing.",
    patches: [
      {
        file: "sdk/object.ts",
        find: 'queue(subject, { counts: "started", perKey',
        replace: 'queue(subject, { counts: "running", perKey',
      },
    ],
    detectedBy: ["objectsAreLinearizable"],
    kind: "with objects",
    within: 50,
  },
];
