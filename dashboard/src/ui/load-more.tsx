interface PagedQuery {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  fetchNextPage(): unknown;
}

/** Loads the next page of a list. Hidden when there is none. */
export function LoadMore({ of: list }: { readonly of: PagedQuery }) {
  if (!list.hasNextPage) return null;
  return (
    <p>
      <button type="button" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        Load more
      </button>
    </p>
  );
}
