import { type Command, optionText, usageOf } from "./command.ts";

const head = `# The program

Written by \`npm run manual\` from the table of commands that the program itself reads; a test keeps the two equal.

\`durable-tape\` and \`tape\` are the same program; \`npx durable-tape\` runs it without installing. Exit codes: 0 fine, 1 refused or failed, 2 misused, 3 something is UNKNOWN or STUCK (\`status\` and \`doctor\`). Every refusal says what to do next. Colours appear only on a terminal, and never with \`NO_COLOR\` set.
`;

/** docs/cli.md. */
export function manual(commands: readonly Command[]): string {
  return `${[head, ...commands.map(section)].join("\n")}`;
}

function section(command: Command): string {
  const { name, summary, arguments: words = [], options = {} } = command;
  const rows = [
    ...words.map((word) => `| \`${word.name}\` | ${word.help} |`),
    ...Object.entries(options).map(
      ([option, one]) => `| \`${optionText(option, one).replaceAll("|", "\\|")}\` | ${one.help} |`,
    ),
  ];
  const table = rows.length === 0 ? [] : ["", "| | |", "|---|---|", ...rows];
  return [
    `## ${name}`,
    "",
    `${summary[0]!.toUpperCase()}${summary.slice(1)}.`,
    "",
    "```text",
    usageOf(command),
    "```",
    ...table,
    "",
  ].join("\n");
}
