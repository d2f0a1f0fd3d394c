import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { openStore, type Store } from "durable-tape";
import { TapeSaver } from "durable-tape/langgraph";

/** LangGraph's own suite for checkpointers, on one store. Each checkpointer has a tenant of its own. */
export function validate(name: string, url: () => Promise<string>, end: () => Promise<void>): void {
  let store: Store;
  let savers = 0;
  const initializer = {
    checkpointerName: name,
    beforeAllTimeout: 60_000,
    async beforeAll() {
      store = await openStore(await url());
    },
    async afterAll() {
      await store.close();
      await end();
    },
    createCheckpointer: () => new TapeSaver({ store, tenant: `saver-${++savers}` }),
  };
  specTest(initializer);
  deltaChannelHistoryTests(initializer);
}
