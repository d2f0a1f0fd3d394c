import type { Dashboard, FieldConfig, Panel, RowPanel, VariableModel } from "@grafana/schema";
import { type Board, type BoardPanel, board } from "../../src/deploy/board.ts";

/** Grafana's types, with the texts and numbers that its enums have. */
type Plain<T> = T extends string
  ? `${T}`
  : T extends number
    ? number
    : T extends readonly (infer Item)[]
      ? Plain<Item>[]
      : T extends object
        ? { [K in keyof T]: Plain<T[K]> }
        : T;

/** Compiles only if there are none: a type check alone accepts a property that Grafana does not know. */
const knows = <_Unknown extends never>(): void => {};

export const known: Plain<Dashboard> = board();
knows<Exclude<keyof Board, keyof Dashboard>>();
knows<Exclude<keyof Board["templating"]["list"][number], keyof VariableModel>>();
knows<Exclude<keyof Board["panels"][number], keyof Panel | keyof RowPanel>>();
knows<Exclude<keyof BoardPanel, keyof Panel>>();
knows<Exclude<keyof BoardPanel["fieldConfig"]["defaults"], keyof FieldConfig>>();
// @ts-expect-error a panel has no such property
knows<Exclude<"titel", keyof Panel>>();
// @ts-expect-error no such mode of thresholds
export const misspelt: Plain<FieldConfig> = { thresholds: { mode: "absolut", steps: [] } };
