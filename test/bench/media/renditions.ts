/**
 * Ours: the transcoder as the worker calls it. Beside it the same files by plain commands: all in one, one for each
 * file, and one for each network. They make exactly the networks' formats and handle no fault that this source lacks.
 */
import { availableParallelism } from 'node:os';
import { initialNeeds, planRenditions } from '#domain/renditions/index.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { platforms } from '#schemas/common.ts';
import type { RenditionSpec } from '#schemas/media.ts';
import { type BenchRow, spread } from '../row.ts';
import { bare, ffmpegPath, folder, moving, type Took, took } from './tools.ts';

type VideoSpec = Extract<RenditionSpec, { kind: 'video' }>;

/** Without a place and without an edit list: either would be refused. */
const wrapped: readonly string[] = [
  ...['-map_metadata', '-1', '-use_editlist', '0', '-avoid_negative_ts', 'disabled'],
  ...['-movflags', '+faststart+negative_cts_offsets'],
];

/** As an expert in the networks' formats writes it by hand. ffmpeg chooses the number of threads. */
const encoder = (spec: VideoSpec): readonly string[] => [
  ...['-c:v', 'libx264', '-preset', 'veryfast', '-profile:v', 'high', '-crf', '20', '-pix_fmt', 'yuv420p'],
  ...['-maxrate', `${spec.videoKbps}k`, '-bufsize', `${2 * spec.videoKbps}k`, '-g', '60', '-flags', '+cgop'],
  ...['-force_key_frames', 'expr:gte(t,n_forced*2)', '-color_range', 'tv'],
  ...['-color_primaries', 'bt709', '-color_trc', 'bt709', '-colorspace', 'bt709'],
  ...['-c:a', 'aac', '-b:a', `${spec.audio?.kbps ?? 128}k`, '-ar', '48000', '-ac', '2'],
  ...wrapped,
];

const scaled = ({ width, height }: VideoSpec): string => `scale=${width}:${height}:flags=lanczos`;

/** For sources that only need another container. */
const copied: readonly string[] = ['-map', '0:v', '-map', '0:a', '-c:v', 'copy', '-c:a', 'copy', ...wrapped];

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

const sum = (all: readonly Took[]): Took => ({
  wall: all.reduce((total, { wall }) => total + wall, 0),
  processor: all.reduce<number | null>(
    (total, { processor }) => (total === null || processor === null ? null : total + processor),
    0,
  ),
});

const wallOf = (all: readonly Took[]) => spread(all.map(({ wall }) => wall));

const seconded = (value = Number.NaN): string => (Number.isNaN(value) ? 'nobody knows' : `${value.toFixed(1)} s`);

export const renditions = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const seconds = quick ? 10 : 60;
  const rounds = quick ? 1 : 3;
  using work = folder();
  const source = work.file('source.mov');
  // As an editing program exports it: a high bitrate, uncompressed sound, and the place of the shot.
  await bare([
    ...[...moving(seconds, '1920x1080'), '-c:v', 'libx264', '-preset', 'veryfast', '-b:v', '32M', '-c:a', 'pcm_s16le'],
    ...['-metadata', 'location=+52.5200+013.4050/', source],
  ]);

  const transcoder = openTranscoder({ ffmpegPath, workDir: work.path, warn: (message) => console.log(message) });
  const { signal } = new AbortController();
  const sniffed = await transcoder.sniff(source);
  if (sniffed === null) throw new Error('the source is no video');
  const probe = await transcoder.probe(source, sniffed, { signal });
  const planned = planRenditions(probe, initialNeeds(probe, platforms));
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

  const ours: Took[] = [];
  const oneCommand: Took[] = [];
  const oneEach: (readonly Took[])[] = [];
  const contenders = [
    async () => {
      const all = { threads: availableParallelism(), signal };
      const { result, ...own } = await took(() => transcoder.render({ path: source, probe }, wanted, all));
      ours.push(own);
      const failed = result.filter(({ kind }) => kind === 'failed');
      if (failed.length > 0) throw new Error(JSON.stringify(failed));
    },
    async () => {
      const command = together(source, specs, (index) => work.file(`together-${index}.mp4`));
      oneCommand.push(await took(() => bare(command)));
    },
    async () => {
      const each: Took[] = [];
      for (const [index, spec] of specs.entries())
        each.push(await took(() => bare(alone(source, spec, work.file(`alone-${index}.mp4`)))));
      oneEach.push(each);
    },
  ];
  // The first contestant changes each round: a machine slows down and speeds up while it works.
  for (let round = 0; round < rounds; round += 1)
    for (const [index] of contenders.entries()) await contenders[(index + round) % contenders.length]?.();

  const [own, single] = [wallOf(ours), wallOf(oneCommand)];
  const each = wallOf(oneEach.map(sum));
  const perNetwork = wallOf(
    oneEach.map((files) => sum(made.flatMap(({ id }) => files[wanted.findIndex((one) => one.id === id)] ?? []))),
  );
  const processor = (own: readonly Took[], other: readonly Took[]): string => {
    const [mine, theirs] = [own, other].map(
      (all) => spread(all.map(({ processor }) => processor ?? Number.NaN)).median,
    );
    return `of the processor ${seconded(mine)} and ${seconded(theirs)}`;
  };
  const sizes = specs.map(({ width, height, videoKbps }) => `${width}x${height} ≤ ${videoKbps} kbit/s`).join(', ');
  const beside = (limit: number, most: number) => ({
    unit: 's',
    ours: own.median,
    limit,
    ratio: (own.median / limit).toFixed(2),
    goal: `≤ ${most} ×`,
    ok: own.median <= most * limit,
  });
  return [
    {
      name: `media: ${seconds} s of 1080p30 for ten networks, beside one command`,
      ...beside(single.median, 1.1),
      note: [
        `${own.min.toFixed(1)}–${own.max.toFixed(1)} s beside ${single.min.toFixed(1)}–${single.max.toFixed(1)} s, ${rounds} rounds;`,
        `${processor(ours, oneCommand)}; ${specs.length} files serve ten networks: ${sizes}`,
      ].join(' '),
    },
    {
      name: 'media: the same beside one command for each file',
      ...beside(each.median, 0.6),
      note: [
        'all that the files share is the decoding, so the one command itself takes',
        `${(single.median / each.median).toFixed(2)} of it; ${processor(ours, oneEach.map(sum))}`,
      ].join(' '),
    },
    {
      name: 'media: the same beside one command for each network',
      ...beside(perNetwork.median, 0.6),
      note: 'each by the one that makes the file it takes; not run again for those that take the same',
    },
  ];
};
