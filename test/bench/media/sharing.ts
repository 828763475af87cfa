/**
 * Two media workers on one machine with more clips than cores: the number of processors that all their ffmpegs use at
 * once.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { TourClient } from '#services/standalone/tour-client.ts';
import type { BenchRow } from '../row.ts';
import { startStandalone } from '../standalone.ts';
import { bare, folder, moving } from './tools.ts';

const main = fileURLToPath(new URL('../../../services/media/main.ts', import.meta.url));

interface Running {
  /** Processors that it may run on; its threads share them. */
  readonly processors: number;
  /** Other runs probe one picture, and end in a moment. */
  readonly encodes: boolean;
}

const ffmpegs = (): readonly Running[] =>
  readdirSync('/proc').flatMap((pid): Running[] => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      if (!/^Name:\tffmpeg$/m.test(status)) return [];
      const list = /^Cpus_allowed_list:\t(.*)$/m.exec(status)?.[1] ?? '';
      const processors = list.split(',').reduce((sum, part) => {
        const [from = 0, to = from] = part.split('-').map(Number);
        return sum + to - from + 1;
      }, 0);
      return [{ processors, encodes: readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('libx264') }];
    } catch {
      return [];
    }
  });

export const sharing = async (quick: boolean): Promise<readonly BenchRow[]> => {
  if (process.platform !== 'linux') return [];
  const seconds = quick ? 3 : 10;
  using work = folder();
  const source = work.file('clip.mov');
  await bare([...moving(seconds, '1920x1080'), '-c:v', 'libx264', '-preset', 'veryfast', '-c:a', 'pcm_s16le', source]);
  const file = readFileSync(source);
  const world = await startStandalone();
  const baseUrl = `http://127.0.0.1:${world.port}/v1`;
  const second = spawn(process.execPath, [main], {
    env: {
      ...{ PATH: process.env.PATH, DATABASE_URL: world.databaseUrl, SECRET_KEY: world.secretKey, BASE_URL: baseUrl },
      ...{ DATA_DIR: world.dataDir, MEDIA_TEMP_DIR: work.path, LOG_LEVEL: 'warn', OUTDATED_FFMPEG: 'take' },
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(second, 'exit');
  try {
    const { signal } = new AbortController();
    const http = () => new TourClient(baseUrl, world.nextKey(), signal);
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const asked = { fileName: 'clip.mov', contentType: 'video/quicktime', bytes: file.length };
      const offer = await http().post<{ assetId: string; url: string; headers: Record<string, string> }>(
        '/media/presign',
        asked,
      );
      await http().upload(offer.url, offer.headers, file);
      await http().post('/media', { assetId: offer.assetId, platforms: ['x', 'instagram'] });
      ids.push(offer.assetId);
    }
    let [most, atOnce, beside, samples] = [0, 0, 0, 0];
    for (let open = ids; open.length > 0; ) {
      const all = ffmpegs();
      const seen = all.filter(({ encodes }) => encodes);
      beside = Math.max(beside, all.length - seen.length);
      most = Math.max(
        most,
        seen.reduce((sum, { processors }) => sum + processors, 0),
      );
      atOnce = Math.max(atOnce, seen.length);
      samples += 1;
      await delay(20);
      if (samples % 25 !== 0) continue;
      const statuses = await Promise.all(open.map((id) => http().get<{ status: string }>(`/media/${id}`)));
      open = open.filter((_, index) => statuses[index]?.status === 'transcoding');
    }
    const cores = availableParallelism();
    return [
      {
        name: 'media: processors that two workers’ encoders may run on at once',
        unit: 'cores',
        ours: most,
        limit: cores,
        goal: `≤ ${cores}`,
        ok: most <= cores,
        note: `${ids.length} clips, ${samples} samples, at most ${atOnce} encoding at once, and ${beside} that look at one picture`,
      },
    ];
  } finally {
    second.kill('SIGTERM');
    await ended;
    await world.stop();
  }
};
