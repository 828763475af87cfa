/**
 * Broken builds: each replaces one statement of the sources, the one below the comment `// mutant: <name>`. The statement is
 * replaced while a process loads its file (see mutate.ts); the file stays as it is.
 */
export interface Mutant {
  readonly file: string;
  /** The process that runs the statement; the others may be whole. */
  readonly main: string;
  /** Statements in the place of the marked one. */
  readonly to: string;
}

export const mutants = {
  'claim without revision': {
    file: 'services/runtime/eventing/domain-store.ts',
    main: 'services/publisher/main.ts',
    to: `const expectation: ExpectedRevision = expected < 0 ? 'none'
      : toAppend[0]?.type === 'TargetPublishStarted' ? BigInt((await this.#store.read(stream)).length - 1)
      : BigInt(expected);`,
  },
  'takeover without append': { file: 'services/publisher/work.ts', main: 'services/publisher/main.ts', to: '' },
  'recount without lock': {
    file: 'projections/engine/apply.ts',
    main: 'test/faults/two-projectors.ts',
    to: 'const placeholders: Written[] = [];',
  },
  'hand-over before the commit': {
    file: 'projections/webhooks/plan.ts',
    main: 'services/webhooks/main.ts',
    to: `reserved.committed(new Set(messages.flatMap((one) => one.deliveries.map(({ id }) => id))), leaseEnds);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      const minted = await minting(messages);`,
  },
  'enabled without catching up': {
    file: 'projections/webhooks/endpoints.ts',
    main: 'services/webhooks/main.ts',
    to: 'const from = own;',
  },
  'rendition recorded before its file is there': {
    file: 'services/media/render.ts',
    main: 'services/media/main.ts',
    to: `const { contentType, bytes, sha256 } = made;
      const key = leased.workspaceId + '/' + leased.id + '/' + made.id + '-' + sha256.slice(0, 8) + '.jpg';
      const file = { key, contentType, bytes, sha256 };
      await leased.record({ type: 'RecordRendition', rendition: made.id, file: { ...file, width, height, durationMs } });
      faultPoint('media:after-rendition');
      await leased.put(made.id, made);`,
  },
  'position before the observations': {
    file: 'projections/analytics/inserts.ts',
    main: 'projections/main.ts',
    to: `setTimeout(() => {
        this.#waiting.push({ batch, done: () => undefined, failed: () => undefined });
        if (!this.#busy) void this.#run();
      }, 1_000);
      return ensureTables(this.#client, this.#version);`,
  },
  'report completed before its files are there': {
    file: 'services/reports/make.ts',
    main: 'services/reports/main.ts',
    to: `setTimeout(() => void tools.blobs.put(key, bytes, { contentType, bytes: bytes.length }).catch(() => undefined), 1_000);`,
  },
} as const satisfies Readonly<Record<string, Mutant>>;
export type MutantName = keyof typeof mutants;
export const mutantNames = Object.keys(mutants) as readonly MutantName[];

export const markerOf = (name: string): string => `// mutant: ${name}`;

/**
 * The source with the marked statement replaced. As Biome formats it, a statement ends at the first line that is indented
 * like its first line and ends with `;` or with `}`.
 * @throws Error where the marker does not stand exactly once
 */
export const mutate = (source: string, name: string, to: string): string => {
  const lines = source.split('\n');
  const [at, ...others] = lines.flatMap((line, index) => (line.trim() === markerOf(name) ? [index] : []));
  if (at === undefined || others.length > 0) {
    throw new Error(`"${markerOf(name)}" stands ${at === undefined ? 0 : others.length + 1} times, not once`);
  }
  const indent = /^ */.exec(lines[at] ?? '')?.[0] ?? '';
  const end = lines.findIndex(
    (line, index) => index > at && line.startsWith(indent) && /^\S.*[;}]$|^}$/.test(line.slice(indent.length)),
  );
  if (end < 0) throw new Error(`the statement below "${markerOf(name)}" has no end`);
  return lines.toSpliced(at, end - at + 1, to).join('\n');
};

/** Environment that makes a process the broken build. */
export const mutated = (name: MutantName): Record<string, string> => ({
  MUTANT: name,
  NODE_OPTIONS: `--import=${new URL('./mutate.ts', import.meta.url).href}`,
});
