/** What the checks of a verification share: where findings go, and which part of a feed is verified. */

export type Say = (finding: string) => void;

/** Findings beyond the bound are counted alone. */
export const findingsOf = (kept: { findings: string[]; more: number }, max: number): { readonly say: Say } => ({
  say: (finding) => {
    if (kept.findings.length < max) kept.findings.push(finding);
    else kept.more += 1;
  },
});

export interface ChecksOptions {
  readonly workspaceId: string;
  /** Events of the feed that are verified. */
  readonly size: number;
  readonly counted: Record<string, number>;
  readonly say: Say;
}
