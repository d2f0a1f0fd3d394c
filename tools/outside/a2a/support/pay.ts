import { effect, outcome } from "durable-tape";

const paid: string[] = [];

export const pay = effect(
  "pay",
  ({ invoice }: { invoice: string }) => {
    paid.push(invoice);
    return { paid: invoice };
  },
  {
    semantics: "non_idempotent",
    businessKey: ({ invoice }) => invoice,
    observe: ({ invoice }) => (paid.includes(invoice) ? outcome.confirmed({ paid: invoice }) : outcome.absent()),
  },
);
