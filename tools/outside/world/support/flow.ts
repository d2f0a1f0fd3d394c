/** What the framework has built of the workflows of its suite. */
const built = import.meta.resolve("@workflow/world-testing/dist/.well-known/workflow/v1/flow.mjs");

export const { POST } = (await import(built)) as { POST: (request: Request) => Promise<Response> };
