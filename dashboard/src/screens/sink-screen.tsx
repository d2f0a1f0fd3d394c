import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import type { DeadLetter, Sink } from "../api.ts";
import { plural } from "../format.ts";
import * as queries from "../queries.ts";
import { usePermissions } from "../session.tsx";
import { LetterActions, SinkActions } from "../sink/sink-actions.tsx";
import { lagText, noteText, stateStatus } from "../sink/sink-text.ts";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { type Fact, Facts } from "../ui/facts.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { type Column, QueryTable } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useNames } from "../ui/use-names.ts";
import { Holder, Passed } from "./sinks-screen.tsx";

export function SinkScreen() {
  const { name } = useParams({ from: "/sinks/$name" });
  const { operate } = usePermissions();
  return (
    <QueryView of={useQuery(queries.sinks())}>
      {({ sinks }) => {
        const sink = sinks.find((one) => one.sink === name);
        if (sink === undefined) {
          return (
            <Screen title={`Sink ${name} not found`}>
              <p>
                <Link to="/sinks">Browse all sinks</Link>
              </p>
            </Screen>
          );
        }
        return (
          <Screen
            title={<span className="mono">{name}</span>}
            about={<About sink={sink} />}
            actions={operate ? <SinkActions sink={sink} /> : undefined}
          >
            <section className="card" aria-label="State">
              <Facts of={factsOf(sink)} />
            </section>
            <Letters sink={sink} />
          </Screen>
        );
      }}
    </QueryView>
  );
}

function About({ sink }: { readonly sink: Sink }) {
  const { paused, state } = sink;
  if (state === "off") return <>No process sends its events: start its fan-out.</>;
  if (state === "running") return <>Events arrive at least once, in the order of their run.</>;
  return (
    <span className="bad-text">
      {noteText(sink)}
      {paused !== undefined && (
        <>
          , <TimeAgo at={paused.at} />
        </>
      )}
    </span>
  );
}

function factsOf(sink: Sink): readonly Fact[] {
  const { openLetters, keptRuns } = sink;
  return [
    ["State", <Badge key="state" status={stateStatus(sink)} />],
    ["Lag", lagText(sink)],
    ["Passed up to", <Passed key="passed" sink={sink} />],
    ["Open dead letters", openLetters],
    ["Holder", <Holder key="holder" sink={sink} />],
    ...(keptRuns === 0 ? [] : [["Kept from pruning", plural(keptRuns, "ended run")] as const]),
  ];
}

const states: readonly DeadLetter["state"][] = ["OPEN", "REPLAY", "SENT", "DISCARDED"];

function Letters({ sink: { sink, openLetters } }: { readonly sink: Sink }) {
  const { operate } = usePermissions();
  const [state, setState] = useState<DeadLetter["state"]>("OPEN");
  const found = useQuery(queries.deadLetters(sink, state));
  const nameOf = useNames((found.data?.letters ?? []).map(({ journal }) => journal));
  const columns: readonly Column<DeadLetter>[] = [
    { name: "Event", className: "mono", cell: ({ event }) => event },
    { name: "Kind", cell: ({ kind }) => kind },
    { name: "About", className: "mono", cell: ({ journal }) => nameOf(journal) ?? `journal ${journal}` },
    { name: "Attempts", cell: ({ attempts }) => attempts },
    {
      name: "Reason",
      cell: ({ code, error }) => (
        <>
          {code}
          <span className="muted small block">{error}</span>
        </>
      ),
    },
    { name: "Since", className: "when", cell: ({ at }) => <TimeAgo at={at} /> },
    ...(operate && state === "OPEN"
      ? [{ name: "Actions", cell: ({ event }: DeadLetter) => <LetterActions sink={sink} event={event} count={1} /> }]
      : []),
  ];
  return (
    <section aria-labelledby="letters">
      <header className="section-head">
        <h2 id="letters">Dead letters</h2>
        <div className="actions">
          <label>
            State
            <select value={state} onChange={({ target }) => setState(target.value as DeadLetter["state"])}>
              {states.map((one) => (
                <option key={one} value={one}>
                  {one.toLowerCase()}
                </option>
              ))}
            </select>
          </label>
          {operate && openLetters > 0 && <LetterActions sink={sink} count={openLetters} />}
        </div>
      </header>
      <QueryTable
        of={found}
        rows={({ letters }) => letters}
        keyOf={({ event }) => event}
        empty={
          <Empty title="No dead letters">
            An event that the sink refuses for good becomes one, so that none is lost.
          </Empty>
        }
        columns={columns}
      />
      {found.data?.more === true && (
        <p className="muted small">Only the oldest are shown: durable-tape sink dead-letters {sink}</p>
      )}
    </section>
  );
}
