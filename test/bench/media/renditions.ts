/** Ours: the transcoder as the worker calls it. Beside it the same files by plain commands, all at once and one by one. */
import { availableParallelism } from 'node:os';
import { initialNeeds, planRenditions } from '#domain/renditions/index.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { platforms } from '#schemas/common.ts';
import type { RenditionSpec } from '#schemas/media.ts';
import { type BenchRow, spread } from '../row.ts';
import { bare, ffmpegPath, folder, moving } from './tools.ts';

type VideoSpec = Extract<RenditionSpec, { kind: 'video' }>;

/** As somebody writes it by hand who knows what the networks ask for. */
const encoder = (spec: VideoSpec): readonly string[] => [
  ...['-c:v', 'libx264', '-preset', 'veryfast', '-profile:v', 'high', '-crf', '20', '-pix_fmt', 'yuv420p'],
  ...['-maxrate', `${spec.videoKbps}k`, '-bufsize', `${2 * spec.videoKbps}k`, '-g', '60', '-flags', '+cgop'],
  ...['-c:a', 'aac', '-b:a', `${spec.audio?.kbps ?? 128}k`, '-ar', '48000', '-ac', '2', '-movflags', '+faststart'],
];

const scaled = ({ width, height }: VideoSpec): string => `scale=${width}:${height}:flags=lanczos`;

/** What only has to be put into another file. */
const copied: readonly string[] = ['-map', '0:v', '-map', '0:a', '-c:v', 'copy', '-c:a', 'copy', '-map_metadata', '-1'];

const isCopy = ({ mode }: VideoSpec): boolean => mode === 'remux';

const together = (source: string, specs: readonly VideoSpec[], to: (index: number) => string): readonly string[] => {
  const encoded = specs.flatMap((spec, index) => (isCopy(spec) ? [] : [index]));
  const graph = [
    `[0:v]split=${encoded.length}${encoded.map((index) => `[s${index}]`).join('')}`,
    ...specs.flatMap((spec, index) => (isCopy(spec) ? [] : [`[s${index}]${scaled(spec)}[o${index}]`])),
  ];
  return [
    ...['-i', source, '-filter_complex', graph.join(';')],
    ...specs.flatMap((spec, index) =>
      isCopy(spec) ? [...copied, to(index)] : ['-map', `[o${index}]`, '-map', '0:a', ...encoder(spec), to(index)],
    ),
  ];
};

const alone = (source: string, spec: VideoSpec, to: string): readonly string[] =>
  isCopy(spec) ? ['-i', source, ...copied, to] : ['-i', source, '-vf', scaled(spec), ...encoder(spec), to];

export const renditions = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const seconds = quick ? 10 : 60;
  const rounds = quick ? 1 : 3;
  using work = folder();
  const source = work.file('source.mov');
  // As an editing program hands it over: too many bits, sound that is not compressed, and the place where it was shot.
  await bare([
    ...[...moving(seconds, '1920x1080'), '-c:v', 'libx264', '-preset', 'veryfast', '-b:v', '32M', '-c:a', 'pcm_s16le'],
    ...['-metadata', 'location=+52.5200+013.4050/', source],
  ]);

  const transcoder = openTranscoder({ ffmpegPath, workDir: work.path, warn: (message) => console.log(message) });
  const { signal } = new AbortController();
  const sniffed = await transcoder.sniff(source);
  if (sniffed === null) throw new Error('the source is no video');
  const probe = await transcoder.probe(source, sniffed, { signal });
  const planned = planRenditions(probe, initialNeeds('video', platforms));
  const made = planned.flatMap((need) => (need.outcome === 'rendition' ? [need] : []));
  if (made.length < platforms.length) {
    const others = planned.filter(({ outcome }) => outcome !== 'rendition');
    throw new Error(`the source was to fit nobody: ${JSON.stringify(others)}`);
  }
  const wanted = [...new Map(made.map(({ id, spec }) => [id, spec]))].map(([id, spec]) => ({
    id,
    spec,
    to: work.file(`${id}.mp4`),
  }));
  const specs = wanted.flatMap(({ spec }) => (spec.kind === 'video' ? [spec] : []));

  const ours: number[] = [];
  const oneCommand: number[] = [];
  const oneEach: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begun = performance.now();
    const results = await transcoder.render({ path: source, probe }, wanted, {
      threads: availableParallelism(),
      signal,
    });
    ours.push((performance.now() - begun) / 1_000);
    const failed = results.filter(({ kind }) => kind === 'failed');
    if (failed.length > 0) throw new Error(JSON.stringify(failed));
    oneCommand.push(await bare(together(source, specs, (index) => work.file(`together-${index}.mp4`))));
    let sum = 0;
    for (const [index, spec] of specs.entries())
      sum += await bare(alone(source, spec, work.file(`alone-${index}.mp4`)));
    oneEach.push(sum);
  }
  const [own, single, each] = [spread(ours), spread(oneCommand), spread(oneEach)];
  const perNetwork = specs.length === 0 ? 0 : (each.median / specs.length) * platforms.length;
  const sizes = specs.map(({ width, height, videoKbps }) => `${width}x${height} ≤ ${videoKbps} kbit/s`).join(', ');
  const range = `${own.min.toFixed(1)}–${own.max.toFixed(1)} s, ${rounds} rounds`;
  return [
    {
      name: `media: ${seconds} s of 1080p30 for ten networks, beside one command`,
      unit: 's',
      ours: own.median,
      limit: single.median,
      ratio: (own.median / single.median).toFixed(2),
      goal: '≤ 1.1 ×',
      ok: own.median <= 1.1 * single.median,
      note: `${range}; ${specs.length} files serve ten networks: ${sizes}`,
    },
    {
      name: 'media: the same beside one command for each file',
      unit: 's',
      ours: own.median,
      limit: each.median,
      ratio: (own.median / each.median).toFixed(2),
      goal: '≤ 0.6 ×',
      ok: own.median <= 0.6 * each.median,
      note: `one command for each network would take ${perNetwork.toFixed(0)} s: ours is ${(own.median / perNetwork).toFixed(2)} of it`,
    },
  ];
};
