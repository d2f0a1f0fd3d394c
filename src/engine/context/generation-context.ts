import type { JournalFigures } from "../../sdk/context.ts";
import { continueAsNew } from "./continuing.ts";
import { journalOf } from "./journal-figures.ts";
import { Operations } from "./operations.ts";

/** What a workflow knows of its generation, and how it ends it. */
export class GenerationContext extends Operations {
  get journal(): JournalFigures {
    return journalOf(this);
  }

  continueAsNew(input: never): Promise<never> {
    return continueAsNew(this, input);
  }
}
