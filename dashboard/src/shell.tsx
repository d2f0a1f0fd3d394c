import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { call } from "./api.ts";
import { overview } from "./queries.ts";
import { SignOut, useIdentity, usePermissions } from "./session.tsx";
import { applyTheme, storedTheme, type Theme } from "./theme.ts";
import { Logo } from "./ui/logo.tsx";
import { useAttention } from "./ui/use-attention.ts";
import { useKeys } from "./ui/use-keys.ts";
import { setServerNow } from "./ui/use-now.ts";

const screens = [
  ["/", "Overview"],
  ["/runs", "Runs"],
  ["/attention", "Needs attention"],
  ["/gates", "Gates"],
  ["/leases", "Leases"],
  ["/queues", "Queues"],
  ["/builds", "Builds"],
  ["/sinks", "Sinks"],
  ["/effects", "Effects"],
  ["/obligations", "Obligations"],
  ["/timers", "Timers and schedules"],
  ["/values", "Values"],
  ["/budgets", "Budgets"],
  ["/health", "Health"],
  ["/audit", "Audit log"],
] as const;

export function Shell() {
  useKeys();
  const { name, role, tenant, backend, version } = useIdentity();
  const permissions = usePermissions();
  const summary = useQuery(overview()).data;
  const attention = useAttention();
  const now = summary?.now;
  useEffect(() => {
    if (now !== undefined) setServerNow(now);
  }, [now]);
  const counts: Partial<Record<string, number>> = {
    "/attention": attention.count,
    "/gates": summary?.gates.count ?? 0,
  };
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <aside>
        <Link to="/" className="brand">
          <Logo />
          Tape
        </Link>
        <nav aria-label="Main">
          {screens
            .filter(([to]) => to !== "/audit" || permissions.audit)
            .map(([to, title]) => (
              <Link key={to} to={to} activeOptions={{ exact: to === "/", includeSearch: false }}>
                {title}
                {(counts[to] ?? 0) > 0 && (
                  <span className="count">
                    {counts[to]}
                    <span className="visually-hidden"> open</span>
                  </span>
                )}
              </Link>
            ))}
        </nav>
        <footer>
          <p className="muted small">
            {name} · {role}
            <br />
            tenant {tenant}
            <br />
            {backend} · version {version}
          </p>
          <ThemeSelect />
          <SignOut />
        </footer>
      </aside>
      <div className="page">
        <Search />
        <main id="content">
          <Outlet />
        </main>
      </div>
    </div>
  );
}

function ThemeSelect() {
  const [theme, setTheme] = useState(storedTheme);
  return (
    <label className="theme small">
      Theme
      <select
        value={theme}
        onChange={(event) => {
          const chosen = event.target.value as Theme;
          setTheme(chosen);
          applyTheme(chosen);
        }}
      >
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

/** Finds a run by its id, by a prefix of it, or by an effect and its business key. */
function Search() {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const term = text.trim();
    if (term === "") return;
    const id = await findRun(term);
    if (id === undefined) await navigate({ to: "/runs", search: { prefix: term } });
    else await navigate({ to: "/runs/$id", params: { id } });
    setText("");
    (document.activeElement as HTMLElement | null)?.blur();
  };
  return (
    <search className="search">
      <form onSubmit={(event) => void submit(event)}>
        <input
          type="search"
          aria-label="Find a run"
          placeholder="Find a run: id, id prefix, or effect:business key"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <kbd>/</kbd>
      </form>
    </search>
  );
}

/** The run to open; undefined when several ids have this prefix. If none has it, the run's page says "not found". */
async function findRun(term: string): Promise<string | undefined> {
  const colon = term.indexOf(":");
  const query = { scope: term.slice(0, colon), businessKey: term.slice(colon + 1) };
  const owner = colon < 1 ? undefined : await call("businessKeys.get", { query }).catch(() => undefined);
  if (owner?.businessKey !== undefined) return owner.businessKey.runId;
  const { runs } = await call("runs.list", { query: { prefix: term, limit: 2 } });
  if (runs.some(({ id }) => id === term)) return term;
  return runs.length > 1 ? undefined : (runs[0]?.id ?? term);
}
