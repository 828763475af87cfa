import type { Finding } from '#contracts/ports/finding.ts';

/** Findings for a person: one line each, and below it what to do. */

export interface Examined {
  readonly network: string;
  /** Null: it has no adapter. */
  readonly findings: readonly Finding[] | null;
}

const verdicts: Readonly<Record<Finding['verdict'], string>> = {
  ok: 'ok',
  warn: 'soon',
  fix: 'fix',
  cannot_tell: 'cannot tell',
  off: 'off',
};
const width = Math.max(...Object.values(verdicts).map(({ length }) => length));

export const mustBeFixed = (examined: readonly Examined[]): number =>
  examined.flatMap(({ findings }) => findings ?? []).filter(({ verdict }) => verdict === 'fix').length;

const linesOf = (findings: readonly Finding[]): string => {
  const names = Math.max(...findings.map(({ about }) => about.length));
  return findings
    .flatMap(({ about, verdict, words, remedy }) => [
      `  ${verdicts[verdict].padEnd(width)}  ${about.padEnd(names)}  ${words}`,
      ...(remedy === null ? [] : [`  ${''.padEnd(width)}  ${''.padEnd(names)}  → ${remedy}`]),
    ])
    .join('\n');
};

export const printed = (examined: readonly Examined[]): string => {
  const built = examined.flatMap(({ network, findings }) =>
    findings === null ? [] : [`${network}\n${linesOf(findings)}`],
  );
  const others = examined.flatMap(({ network, findings }) => (findings === null ? [network] : []));
  const count = mustBeFixed(examined);
  return [
    ...built,
    ...(others.length === 0 ? [] : [`not built\n  ${others.join(', ')}`]),
    count === 0 ? 'Nothing must be fixed.' : `${count} to fix.`,
  ].join('\n\n');
};

/** `ok`: nothing must be fixed. */
export const asJson = (examined: readonly Examined[]): string =>
  JSON.stringify({
    ok: mustBeFixed(examined) === 0,
    networks: examined.map(({ network, findings }) => ({
      network,
      built: findings !== null,
      findings: findings ?? [],
    })),
  });
