import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api.ts";
import { router } from "./router.tsx";
import { SessionProvider } from "./session.tsx";
import { applyTheme } from "./theme.ts";
import { escapeInvisible } from "./ui/escape-invisible.ts";

applyTheme();
escapeInvisible(document.documentElement);

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Wake hints refetch at once; this interval covers lost ones.
      refetchInterval: (query) => (query.meta?.live === false ? false : 5_000),
      staleTime: 1_000,
      gcTime: 60_000,
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <SessionProvider>
        <RouterProvider router={router} />
      </SessionProvider>
    </QueryClientProvider>
  </StrictMode>,
);
