/** Memory of a worker that ends a large video, which two workers before it have begun and not ended. */
import { mostGrownBytes } from '#test/support/networks/killed-upload.ts';
import { type LargeUpload, largeUploads } from '#test/support/networks/killed-uploads.ts';
import { type BenchRow, spread } from '../row.ts';

const mb = 1024 * 1024;

const row = async ({ says, bytes, mostAgainBytes, run }: LargeUpload, turns: number): Promise<BenchRow> => {
  const grown: number[] = [];
  let [again, begun] = [0, 0];
  for (let turn = 0; turn < turns; turn += 1) {
    const done = await run();
    if (done.ended === null || done.held !== bytes) throw new Error(`${says}: the last worker did not end it`);
    grown.push(done.ended.grownBytes / mb);
    again = Math.max(again, done.againBytes);
    begun = Math.max(begun, done.begun);
  }
  const { median, min, max } = spread(grown);
  return {
    name: `${says}, its worker killed twice: memory`,
    unit: 'MB',
    ours: median,
    goal: `≤ ${mostGrownBytes / mb}, begun once`,
    ok: max <= mostGrownBytes / mb && begun === 1 && again <= mostAgainBytes,
    note: `min ${min.toFixed(1)}, max ${max.toFixed(1)}; begun ${begun} times; at most ${(again / mb).toFixed(1)} MB sent again`,
  };
};

export const upload = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const rows: BenchRow[] = [];
  for (const one of Object.values<LargeUpload>(largeUploads)) rows.push(await row(one, quick ? 1 : 3));
  return rows;
};
