import type { Message, Part } from "../../agent/conversation.ts";
import type { ConversationSums, Turn, TurnCall, TurnGate } from "../../agent/turn.ts";
import { defined } from "../../base/defined.ts";
import { readConversation } from "../../operator/conversation.ts";
import { outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { brief, lasting, printJson, timeOf, wantsJson } from "../output.ts";
import type { Screen } from "../screen.ts";

const maxTextChars = 2_000;
const maxBriefChars = 160;

export const conversation: Command = {
  name: "conversation",
  summary:
    "shows the conversation of a run with its models: turns, tool calls with their effects and approvals, tokens and costs",
  arguments: [{ name: "run", help: "run id" }],
  options: {
    from: { value: "N", help: "first turn (default: 0)" },
    limit: { value: "N", help: "number of turns, at most 200 (default: all)" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const { run } = invocation.arguments as { run: string };
      const limit = wholeOf("--limit", invocation.text("limit"));
      const { screen } = invocation;
      const turns: Turn[] = [];
      for (let from = wholeOf("--from", invocation.text("from")); ; ) {
        const page = await readConversation(store, tenant, run, defined({ from, limit }));
        if (wantsJson(invocation)) turns.push(...page.turns);
        else {
          if (from === undefined || limit !== undefined) printHead(screen, run, page.status, page.sums);
          for (const [k, turn] of page.turns.entries()) printTurn(screen, page.from + k, turn);
          if (page.cut === true) screen.line(screen.bad("the journal is longer than what is read of one"));
        }
        from = page.next;
        if (from !== undefined && limit === undefined) continue;
        if (wantsJson(invocation)) printJson(invocation, { ...page, turns });
        else if (from !== undefined) screen.line(`\nmore turns: --from ${from}`);
        return 0;
      }
    }),
};

function printHead(screen: Screen, run: string, status: string, sums: ConversationSums): void {
  screen.line(`${screen.bold(run)}  ${status}`);
  const { turns, attempts, lost, input, output, usd, presumed, models } = sums;
  if (turns === 0) {
    screen.line("the run has called no model");
    return;
  }
  const cost = usd === undefined ? "" : `, ${amount(usd)} usd`;
  screen.line(`${turns} turns, ${attempts} calls; ${amount(input)} tokens in, ${amount(output)} out${cost}`);
  if (models.length > 0) screen.line(`models ${models.join(", ")}`);
  if (lost > 0)
    screen.line(screen.bad(`${lost} calls lost in a crash and asked again, presumed cost ${units(presumed)}`));
}

const amount = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 6 });
const units = (amounts: Readonly<Record<string, number>>): string =>
  Object.entries(amounts)
    .map(([unit, value]) => `${amount(value)} ${unit}`)
    .join(", ");

function printTurn(screen: Screen, number: number, turn: Turn): void {
  const { agent, model, usage, latencyMs, attempts, lost, changed, kept, open, under } = turn;
  const facts = [
    model,
    usage && `${amount(usage.input)} in, ${amount(usage.output)} out`,
    usage?.cached !== undefined && `${amount(usage.cached)} cached`,
    usage?.usd !== undefined && `${amount(usage.usd)} usd`,
    latencyMs !== undefined && lasting(latencyMs),
    attempts > 1 && `${attempts} attempts`,
    lost > 0 && `${lost} lost in a crash`,
    changed && "request changed since",
    kept && "kept by the fork",
    open && "in progress",
    under && `sub-agent of call ${under.call}`,
  ].filter((fact) => typeof fact === "string");
  screen.line();
  screen.line(`${screen.bold(`${number} ${agent}`)}  ${timeOf(turn.at)}  ${facts.join(" · ")}`);
  for (const message of turn.messages) printMessage(screen, message);
  for (const { attempt, error } of turn.failures)
    screen.line(`  attempt ${attempt} failed: ${brief(error, maxBriefChars)}`);
  if (turn.answer !== undefined) printMessage(screen, turn.answer);
  if (turn.error !== undefined) screen.line(`  ${screen.bad(brief(turn.error, maxBriefChars))}`);
  for (const call of turn.calls) printCall(screen, call);
  for (const gate of turn.gates ?? []) screen.line(`  gate ${gate.name}: ${gateText(gate)}`);
  for (const { run, workflow, status } of turn.children ?? [])
    screen.line(`  child ${run}  ${workflow}  ${status ?? ""}`);
}

function printMessage(screen: Screen, { role, parts, cut }: Message): void {
  if (cut === true) screen.line(`  ${role}: (left out)`);
  for (const part of parts) {
    const text = partText(part);
    if (text !== undefined) screen.line(`  ${role}: ${text}`);
  }
}

/** Tool calls are printed with what became of them. */
function partText(part: Part): string | undefined {
  switch (part.type) {
    case "text":
      return brief(part.text, maxTextChars);
    case "reasoning":
      return `(reasoning) ${brief(part.text, maxBriefChars)}`;
    case "tool_result":
      return `result of ${part.name ?? part.id}: ${brief(part.output, maxBriefChars)}`;
    case "file":
      return `file ${[part.name, part.mediaType, part.bytes && `${part.bytes} bytes`].filter(Boolean).join(", ")}`;
    default:
      return undefined;
  }
}

function printCall(screen: Screen, { id, name, input, effect, approval, children }: TurnCall): void {
  screen.line(`  ${screen.bold(`${name} ${id}`)}  ${brief(input, maxBriefChars)}`);
  if (approval !== undefined) screen.line(`    approval ${gateText(approval)}`);
  if (effect !== undefined) {
    const { pos, name: of, status, attempts, token, error } = effect;
    const line = `effect ${pos} ${of} ${status}, ${attempts} attempts${token === undefined ? "" : `, token ${token}`}`;
    screen.line(
      `    ${status === "CONFIRMED" ? line : screen.bad(`${line}${error === undefined ? "" : `: ${error}`}`)}`,
    );
  }
  for (const { run, workflow, status } of children ?? []) screen.line(`    child ${run}  ${workflow}  ${status ?? ""}`);
}

function gateText({ status, approved, by, resolvedAt, binds }: TurnGate): string {
  const answer = approved === undefined ? status : approved ? "approved" : "denied";
  const parts = [
    answer,
    by === undefined ? "" : `by ${by}`,
    resolvedAt === undefined ? "" : `at ${timeOf(resolvedAt)}`,
    binds === undefined ? "" : `bound to ${binds.slice(0, 16)}`,
  ];
  return parts.filter((part) => part !== "").join(" ");
}
