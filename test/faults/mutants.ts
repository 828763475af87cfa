/**
 * Broken builds: what each leaves out, and where. Made while the source is loaded (see mutate.ts), never in the source.
 */
export interface Mutant {
  readonly file: string;
  /** Must stand in the file exactly once. */
  readonly from: string;
  readonly to: string;
}

export const mutants = {
  'claim without revision': {
    file: 'services/runtime/eventing/domain-store.ts',
    from: "const expectation: ExpectedRevision = expected < 0 ? 'none' : BigInt(expected);",
    to: `const expectation: ExpectedRevision = expected < 0 ? 'none'
      : toAppend[0]?.type === 'TargetPublishStarted' ? BigInt((await this.#store.read(stream)).length - 1)
      : BigInt(expected);`,
  },
  'takeover without append': {
    file: 'services/publisher/take-over.ts',
    from: "await leased.record({ type: 'TakeOver', attempt: target.attempts, takeover: target.takeover });",
    to: '',
  },
  'recount without lock': {
    file: 'projections/apply.ts',
    from: 'rows.has(id) ? [] : [placeholder(id, workspaceId)]',
    to: '[]',
  },
  'hand-over before the commit': {
    file: 'projections/webhooks/plan.ts',
    from: 'const minted = await minting(messages);',
    to: `reserved.committed(new Set(messages.flatMap((one) => one.deliveries.map(({ id }) => id))), leaseEnds);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const minted = await minting(messages);`,
  },
  'enabled without catching up': {
    file: 'projections/webhooks/endpoints.ts',
    from: 'await this.#open(id, from, after, event);',
    to: 'await this.#open(id, position, after, event);',
  },
  'rendition recorded before its file is there': {
    file: 'services/media/render.ts',
    from: 'const file = await held.put(made.id, made);',
    to: `const { contentType, bytes, sha256 } = made;
      const key = held.workspaceId + '/' + held.id + '/' + made.id + '-' + sha256.slice(0, 8) + '.jpg';
      const file = { key, contentType, bytes, sha256 };
      await held.record({ type: 'RecordRendition', rendition: made.id, file: { ...file, width, height, durationMs } });
      faultPoint('media:after-rendition');
      await held.put(made.id, made);`,
  },
  'position before the observations': {
    file: 'projections/analytics/inserts.ts',
    from: 'add(batch: Batch): Promise<void> {',
    to: `add(batch: Batch): Promise<void> {
      setTimeout(() => void this.#late(batch).catch(() => undefined), 1_000);
      return ensureTables(this.#client, this.#version);
    }
    #late(batch: Batch): Promise<void> {`,
  },
  'report completed before its files are there': {
    file: 'services/reports/make.ts',
    from: 'await tools.blobs.put(key, bytes, { contentType, bytes: bytes.length, signal });',
    to: `setTimeout(() => void tools.blobs.put(key, bytes, { contentType, bytes: bytes.length }).catch(() => undefined), 1_000);`,
  },
} as const satisfies Readonly<Record<string, Mutant>>;
export type MutantName = keyof typeof mutants;
export const mutantNames = Object.keys(mutants) as readonly MutantName[];

/** Environment that makes a process the broken build. */
export const mutated = (name: MutantName): Record<string, string> => ({
  MUTANT: name,
  NODE_OPTIONS: `--import=${new URL('./mutate.ts', import.meta.url).href}`,
});
