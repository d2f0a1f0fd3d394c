import type { Health } from "../queries.ts";
import { Badge } from "./badge.tsx";

export function StoreState({ health: { status, backend, store } }: { readonly health: Health }) {
  return (
    <>
      <Badge status={store.reachable ? "CONFIRMED" : "FAILED"} label={status} /> {backend},{" "}
      {store.durable === true ? "durable" : "not durable: a power failure may lose recent writes"}
    </>
  );
}

export const feedState = ({ feed }: Health): string =>
  feed?.blockedBy == null ? "up to date" : `blocked by ${feed.blockedBy}`;
