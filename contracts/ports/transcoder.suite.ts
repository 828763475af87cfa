/**
 * The behaviour of every transcoder, shown with real files. A harness passes the adapter, makes files, and lists
 * leftovers.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { access, readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import type { RenditionSpec } from '#schemas/media.ts';
import {
  type MadeRendition,
  type SourceFile,
  TranscodeError,
  type Transcoder,
  type WantedRendition,
} from './transcoder.ts';

export interface TranscoderHarness {
  readonly transcoder: Transcoder;
  /** Folder for the renditions of the cases. */
  readonly folder: string;
  /** A new file each time: 1 s, 320 by 180 at 30 pictures a second, H.264 with sound. */
  clip(seconds?: number): Promise<string>;
  /** A new JPEG of 400 by 300. */
  picture(): Promise<string>;
  /** Other files that are still in the work folder. */
  leftovers(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface Cases {
  (name: string, run: () => Promise<void>): void;
  before(run: () => Promise<void>): void;
  after(run: () => Promise<void>): void;
}

const video = (over: Partial<Extract<RenditionSpec, { kind: 'video' }>> = {}): RenditionSpec => ({
  kind: 'video',
  mode: 'encode',
  width: 320,
  height: 180,
  fit: 'scale',
  fps: 30,
  videoKbps: 500,
  audio: { kbps: 64, sampleRate: 48_000, channels: 2 },
  maxBytes: null,
  ...over,
});

const still = (over: Partial<Extract<RenditionSpec, { kind: 'image' }>> = {}): RenditionSpec => ({
  kind: 'image',
  format: 'jpeg',
  width: 200,
  height: 150,
  fit: 'scale',
  quality: 80,
  maxBytes: null,
  ...over,
});

const ending = (spec: RenditionSpec): string => (spec.kind === 'video' ? 'mp4' : spec.format);
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const asMade = (made: MadeRendition | undefined) => {
  assert.equal(made?.kind, 'made', JSON.stringify(made));
  return made as Extract<MadeRendition, { kind: 'made' }>;
};

export const transcoderSuite = (t: Cases, open: () => Promise<TranscoderHarness>): void => {
  let harness: TranscoderHarness;
  t.before(async () => {
    harness = await open();
  });
  t.after(() => harness.close());

  const want = (spec: RenditionSpec): WantedRendition => {
    const id = randomBytes(16).toString('hex');
    return { id, spec, to: join(harness.folder, `${id}.${ending(spec)}`) };
  };
  const sourceOf = async (path: string): Promise<SourceFile> => {
    const sniffed = await harness.transcoder.sniff(path);
    assert.ok(sniffed);
    return { path, probe: await harness.transcoder.probe(path, sniffed, { signal: new AbortController().signal }) };
  };
  const render = (source: SourceFile, wanted: readonly WantedRendition[], signal = new AbortController().signal) =>
    harness.transcoder.render(source, wanted, { threads: 1, signal });
  const refused = async (work: Promise<unknown>, kind: TranscodeError['kind'], code?: string): Promise<void> => {
    await assert.rejects(work, (error: unknown) => {
      assert.ok(error instanceof TranscodeError, String(error));
      assert.equal(error.kind, kind);
      assert.equal(error.failure === null, kind === 'interrupted');
      if (code !== undefined) assert.equal(error.failure?.code, code);
      return true;
    });
  };

  t('describes its versions', async () => {
    assert.match(await harness.transcoder.describe(), /\d/);
  });

  t('probes a video and a picture', async () => {
    const { probe } = await sourceOf(await harness.clip());
    assert.equal(probe.kind, 'video');
    assert.deepEqual([probe.width, probe.height, probe.video?.codec, probe.video?.fps], [320, 180, 'h264', 30]);
    assert.ok(Math.abs((probe.durationMs ?? 0) - 1_000) < 100);
    assert.ok(probe.audio);
    const picture = (await sourceOf(await harness.picture())).probe;
    assert.deepEqual([picture.kind, picture.contentType], ['image', 'image/jpeg']);
    assert.deepEqual([picture.width, picture.height, picture.image?.format], [400, 300, 'jpeg']);
  });

  t('makes every rendition in the requested order and describes it', async () => {
    const source = await sourceOf(await harness.clip());
    const before = await readFile(source.path);
    const small = want(video({ width: 160, height: 90, audio: null }));
    const shape = { width: 160, height: 90, fit: 'scale', quality: 80, maxBytes: null } as const;
    const frame = want({ kind: 'frame', format: 'jpeg', atMs: 500, ...shape });
    const wanted = [want(video()), frame, small];
    const made = await render(source, wanted);
    assert.deepEqual(
      made.map(({ id }) => id),
      wanted.map(({ id }) => id),
    );
    for (const [index, each] of made.entries()) {
      const { path, bytes, sha256, width, height, contentType } = asMade(each);
      const spec = wanted[index]?.spec;
      assert.deepEqual([width, height], [spec?.width, spec?.height]);
      assert.equal(contentType, spec?.kind === 'video' ? 'video/mp4' : 'image/jpeg');
      const content = await readFile(path);
      assert.equal(content.length, bytes);
      assert.equal(createHash('sha256').update(content).digest('hex'), sha256);
    }
    assert.deepEqual(await readFile(source.path), before, 'the source is only read');
    assert.deepEqual(await harness.leftovers(), []);
  });

  t('a rendition that fails does not affect the others', async () => {
    const source = await sourceOf(await harness.clip());
    const heavy = want(video({ maxBytes: 100 }));
    const [failed, made] = await render(source, [heavy, want(video({ width: 160, height: 90 }))]);
    assert.equal(failed?.kind, 'failed');
    assert.equal(failed?.kind === 'failed' ? failed.failure.code : '', 'media_too_heavy');
    assert.equal(await exists(heavy.to), false);
    asMade(made);
  });

  t('keeps a picture under its limit of bytes, or reports that it cannot', async () => {
    const source = await sourceOf(await harness.picture());
    const [free] = await render(source, [want(still({ quality: 95 }))]);
    const { bytes } = asMade(free);
    const limit = Math.floor(bytes * 0.7);
    const [small, none] = await render(source, [
      want(still({ quality: 95, maxBytes: limit })),
      want(still({ quality: 95, maxBytes: 10 })),
    ]);
    assert.ok(asMade(small).bytes <= limit);
    assert.equal(none?.kind === 'failed' ? none.failure.code : '', 'media_too_heavy');
  });

  t('refuses an empty file and one that is cut off', async () => {
    const empty = await harness.clip();
    await truncate(empty, 0);
    await refused(harness.transcoder.sniff(empty), 'unreadable', 'media_empty');
    for (const path of [await harness.clip(), await harness.picture()]) {
      const whole = (await readFile(path)).length;
      await truncate(path, Math.floor(whole / 2));
      await refused(sourceOf(path), 'unreadable', 'media_unreadable');
    }
  });

  t('stops when its signal aborts, and leaves no file', async () => {
    const source = await sourceOf(await harness.clip(20));
    const wanted = [want(video()), want(video({ width: 160, height: 90 }))];
    const stop = new AbortController();
    const onProgress = () => stop.abort();
    const rendering = harness.transcoder.render(source, wanted, { threads: 1, signal: stop.signal, onProgress });
    await refused(rendering, 'interrupted');
    for (const { to } of wanted) assert.equal(await exists(to), false);
    assert.deepEqual(await harness.leftovers(), []);
    await refused(render(source, wanted, AbortSignal.abort()), 'interrupted');
  });

  t('reports progress from 0 to 1, never backwards', async () => {
    const seen: number[] = [];
    const source = await sourceOf(await harness.clip(2));
    const onProgress = (done: number) => seen.push(done);
    await harness.transcoder.render(source, [want(video())], {
      threads: 1,
      signal: new AbortController().signal,
      onProgress,
    });
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    );
    assert.equal(seen.at(-1), 1);
    assert.ok(seen.every((done) => done >= 0 && done <= 1));
  });
};
