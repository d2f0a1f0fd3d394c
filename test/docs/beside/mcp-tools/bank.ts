/** In place of a client that is connected to a server. */
const ledger = new Set<string>();

interface Call {
  readonly name: string;
  readonly arguments?: { readonly invoice?: string; readonly amount?: number };
}

export const connect = async () => ({
  async callTool({ name, arguments: { invoice = "", amount } = {} }: Call) {
    if (name === "look") return { content: [], structuredContent: { amount: 120 } };
    ledger.add(invoice);
    return { content: [{ type: "text", text: `paid ${invoice} with ${amount}` }] };
  },
});

export const paid = async (invoice: string): Promise<boolean> => ledger.has(invoice);
