/** A large video to a simulated network, whose worker is killed again and again on the way: the last one ends it. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Checkpoint, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import type { Members } from '#infra/platforms/shared/members.ts';
import type { GivenVideo, Reported, Tells } from './upload-child.ts';

/** Resident memory that an upload may cost its worker. */
export const mostGrownBytes = 48 * 1_024 ** 2;

export type EndedUpload = Extract<Tells, { kind: 'ended' }>;

export interface KilledUpload {
  /** What each worker told that was killed: null, or it was killed too late. */
  readonly killed: readonly (EndedUpload | null)[];
  /** Null: the last worker told nothing. */
  readonly ended: EndedUpload | null;
  readonly checkpoints: readonly Checkpoint[];
}

interface Asked {
  readonly app: NetworkApp;
  readonly secret: Members | undefined;
  /** With the video alone. */
  readonly request: PublishRequest;
  /** A small video that the last worker publishes before it is measured. Absent: none. */
  readonly small?: PublishMedia;
  /** Checkpoints after which each worker is killed. */
  readonly kills: readonly number[];
}

const given = async ({ file, url: _, ...media }: PublishMedia): Promise<GivenVideo> => ({ file: await file(), media });

export const killedUpload = async ({ app, secret = {}, request, small, kills }: Asked): Promise<KilledUpload> => {
  const { media, ...rest } = request;
  const [video] = media;
  if (video === undefined) throw new Error('there is no video');
  const [large, warmUp] = [await given(video), small === undefined ? null : await given(small)];
  const checkpoints: Checkpoint[] = [];
  const work = async (attempt: number, killAfter: number): Promise<EndedUpload | null> => {
    const asked = { ...rest, attempt, checkpoints };
    const isLast = killAfter === Number.POSITIVE_INFINITY;
    const reported: Reported = { ...{ app, secret, request: asked, video: large }, warmUp: isLast ? warmUp : null };
    const child = fork(path.join(import.meta.dirname, 'upload-child.ts'), [JSON.stringify(reported)]);
    let left = killAfter;
    let ended: EndedUpload | null = null;
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
  const killed: (EndedUpload | null)[] = [];
  for (const [at, after] of kills.entries()) killed.push(await work(at + 1, after));
  return { killed, ended: await work(kills.length + 1, Number.POSITIVE_INFINITY), checkpoints };
};
