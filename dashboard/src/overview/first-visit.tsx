import type { ReactNode } from "react";
import { CopyCommand } from "../ui/copy-command.tsx";
import { isSilent, labelsOf, type Process, useProcesses } from "../ui/use-processes.ts";

const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** For a store without a run: what this page is, and the commands that lead to the first one. It goes away with it. */
export function FirstVisit() {
  const processes = useProcesses().filter((process) => !isSilent(process));
  const workflows = [...new Set(processes.flatMap((process) => process.workflows))].sort();
  return (
    <section className="card first-visit" aria-labelledby="first-visit">
      <h2 id="first-visit">Nothing has run here yet</h2>
      <p>
        This page shows what the runs of this store do: which are at work, which wait and for what, which effects are in
        doubt, and which need you. It updates on its own. With the first run, these steps disappear.
      </p>
      <ol>
        {workflows.length === 0 ? <CreateProject /> : <Served {...{ processes, workflows }} />}
        <Step title="Start a run">
          <CopyCommand command={startCommand(workflows[0])} />
          {workflows.length > 0 && (
            <p className="muted small">
              The input is the second argument of the workflow&rsquo;s function. Your program can start it, too:{" "}
              <code>app.start({workflows[0]}, input)</code>
            </p>
          )}
        </Step>
        <Step title="Kill its process while it works">
          <p className="muted">
            Another one takes the run over and resumes where the journal ends. Open the run here to see both terms.
          </p>
        </Step>
      </ol>
    </section>
  );
}

function Step({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <li>
      <h3>{title}</h3>
      {children}
    </li>
  );
}

/** No process serves a workflow: a project with one comes from the template. */
function CreateProject() {
  return (
    <>
      <Step title="Create a project">
        <CopyCommand command="npx durable-tape init my-agent && cd my-agent && npm install" />
      </Step>
      <Step title="Let its worker use this store">
        <CopyCommand command={`npx tape-reactors --store ${location.origin}`} />
        <p className="muted small">
          If this server asks for a token, put one into <code>TAPE_TOKEN</code> first.
        </p>
      </Step>
    </>
  );
}

function Served({
  processes,
  workflows,
}: {
  readonly processes: readonly Process[];
  readonly workflows: readonly string[];
}) {
  return (
    <Step title="A worker is ready">
      <p className="muted">
        {labelsOf(processes).join(", ")} {processes.length === 1 ? "serves" : "serve"}{" "}
        {workflows.slice(0, maxNames).join(", ")}
        {workflows.length > maxNames ? " and more" : ""}.
      </p>
    </Step>
  );
}

const maxNames = 8;

/** The template's workflow has an input of its own; that of another workflow is for the reader to write. */
function startCommand(workflow = "pay"): string {
  const input = workflow === "pay" ? '{"invoice":"7","amount":250}' : "{}";
  return `npx durable-tape start ${quote(workflow)} --input ${quote(input)} --store ${location.origin}`;
}
