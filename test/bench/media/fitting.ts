/** Through standalone as a caller uses it: upload, register, and wait until the asset is publishable. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { TourClient } from '#services/standalone/tour-client.ts';
import { type BenchRow, spread } from '../row.ts';
import { startStandalone } from '../standalone.ts';
import { bare, folder, moving } from './tools.ts';

interface Asset {
  readonly status: string;
  readonly publishable: boolean;
  readonly variants: readonly { readonly platform: string; readonly status: string }[];
}

export const fitting = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const seconds = quick ? 10 : 60;
  using work = folder();
  const source = work.file('fits.mp4');
  await bare([
    ...[...moving(seconds, '1280x720'), '-c:v', 'libx264', '-preset', 'veryfast', '-profile:v', 'high', '-b:v', '4M'],
    ...[
      '-maxrate',
      '4M',
      '-bufsize',
      '8M',
      '-g',
      '60',
      '-flags',
      '+cgop',
      '-c:a',
      'aac',
      '-b:a',
      '128k',
      '-ar',
      '48000',
    ],
    ...[
      '-ac',
      '2',
      '-map_metadata',
      '-1',
      '-use_editlist',
      '0',
      '-movflags',
      '+faststart+negative_cts_offsets',
      source,
    ],
  ]);
  const file = readFileSync(source);
  const world = await startStandalone();
  try {
    const { signal } = new AbortController();
    // Each call under another key: no single caller polls this often.
    const http = () => new TourClient(`http://127.0.0.1:${world.port}/v1`, world.nextKey(), signal);
    const times: number[] = [];
    let last: Asset | null = null;
    for (let round = 0; round < (quick ? 2 : 5); round += 1) {
      const asked = { fileName: 'fits.mp4', contentType: 'video/mp4', bytes: file.length, clientId: world.clientId };
      const offer = await http().post<{ assetId: string; url: string; headers: Record<string, string> }>(
        '/media/presign',
        asked,
      );
      await http().upload(offer.url, offer.headers, file);
      const begun = performance.now();
      await http().post('/media', { assetId: offer.assetId });
      for (;;) {
        last = await http().get<Asset>(`/media/${offer.assetId}`);
        if (last.status !== 'pending' && last.status !== 'transcoding') break;
        await delay(20);
      }
      if (!last.publishable) throw new Error(`the asset ended as ${last.status}`);
      times.push((performance.now() - begun) / 1_000);
    }
    const { median, min, max } = spread(times);
    const untouched = last?.variants.filter(({ status }) => status === 'not_needed').length;
    return [
      {
        name: `media: ${seconds} s that fit, registered to publishable`,
        unit: 's',
        ours: median,
        goal: '≤ 2',
        ok: median <= 2,
        note: `${min.toFixed(2)}–${max.toFixed(2)} s; ${untouched} of ${last?.variants.length} networks take it as it came`,
      },
    ];
  } finally {
    await world.stop();
  }
};
