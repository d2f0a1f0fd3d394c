import { Link } from "@tanstack/react-router";

export function RunLink({ id }: { readonly id: string }) {
  return (
    <Link to="/runs/$id" params={{ id }} className="mono" data-row>
      {id}
    </Link>
  );
}
