/** A video of 100 MB to the simulated X, whose worker is killed twice on the way: the third one ends it. */
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Checkpoint } from '#contracts/ports/platform.ts';
import { xWorld } from '#test/support/networks/x/world.ts';
import type { Reported, Tells } from './upload-child.ts';

const bytes = 100 * 1024 * 1024;
/** Checkpoints after which each worker is killed. */
const kills = [3, 2];
const segment = 4_000_000;

/** A kill costs at most the segments of one checkpoint, and those that left before it struck. */
export const mostAgainBytes = kills.length * 8 * segment;
/** Resident memory that an upload may cost its worker. */
export const mostGrownBytes = 48 * 1024 * 1024;

type Ended = Extract<Tells, { kind: 'ended' }>;

export interface KilledUpload {
  /** Of each worker that was killed; all are null. */
  readonly killed: readonly (Ended | null)[];
  /** Null: the last worker told nothing. */
  readonly ended: Ended | null;
  readonly initializes: number;
  readonly posts: number;
  /** Bytes that the network received more than once. */
  readonly againBytes: number;
}

export const killedUpload = async (): Promise<KilledUpload> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'x-resume-'));
  const world = await xWorld();
  const { state } = world.network;
  try {
    const file = path.join(folder, 'video');
    writeFileSync(file, '');
    truncateSync(file, bytes);
    const account = await world.account();
    const secret = (await world.credentials.read(account.id))?.secret;
    const { media: _, ...request } = world.request(account);
    const mediaId = randomUUID();
    const checkpoints: Checkpoint[] = [];
    const work = async (attempt: number, killAfter: number): Promise<Ended | null> => {
      const accessToken = String(secret?.accessToken);
      const asked = { ...request, attempt, checkpoints };
      const reported: Reported = { origin: world.network.origin, file, bytes, mediaId, accessToken, request: asked };
      const child = fork(path.join(import.meta.dirname, 'upload-child.ts'), [JSON.stringify(reported)]);
      let left = killAfter;
      let ended: Ended | null = null;
      child.on('message', (message) => {
        const tells = message as Tells;
        if (tells.kind === 'ended') ended = tells;
        else if (left > 0) {
          checkpoints.push({ attempt, step: tells.step, data: tells.data, deadline: null });
          left -= 1;
          if (left === 0) child.kill('SIGKILL');
        }
      });
      await once(child, 'exit');
      return ended;
    };
    const killed: (Ended | null)[] = [];
    for (const [at, after] of kills.entries()) killed.push(await work(at + 1, after));
    const ended = await work(kills.length + 1, Number.POSITIVE_INFINITY);
    const [upload] = [...state.uploads.values()];
    return {
      ...{ killed, ended, posts: state.posts.length },
      initializes: state.calls.filter(({ path: at }) => at.endsWith('/initialize')).length,
      againBytes: (upload?.received ?? 0) - bytes,
    };
  } finally {
    world.network.close();
    rmSync(folder, { recursive: true, force: true });
  }
};
