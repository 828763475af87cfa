/** A large video whose worker is killed: the next one goes on. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Checkpoint } from '#contracts/ports/platform.ts';
import { xWorld } from '#test/support/networks/x/world.ts';
import { suite } from '#test/support/suite.ts';
import type { Tells, Told } from './upload-child.ts';

const bytes = 100 * 1024 * 1024;
const segment = 4_000_000;
const maxGrownBytes = 48 * 1024 * 1024;

suite('a killed upload to x', (t) => {
  t('of 100 MB costs no second initialize, and a worker at most 48 MB of memory', async () => {
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
      const work = async (attempt: number, killAfter: number) => {
        const accessToken = String(secret?.accessToken);
        const asked = { ...request, attempt, checkpoints };
        const told: Told = { origin: world.network.origin, file, bytes, mediaId, accessToken, request: asked };
        const child = fork(path.join(import.meta.dirname, 'upload-child.ts'), [JSON.stringify(told)]);
        let left = killAfter;
        let ended: Extract<Tells, { kind: 'ended' }> | null = null;
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
        return ended as Extract<Tells, { kind: 'ended' }> | null;
      };
      assert.equal(await work(1, 3), null);
      assert.equal(await work(2, 2), null);
      const ended = await work(3, Number.POSITIVE_INFINITY);
      assert.ok(ended !== null);
      assert.equal((ended.outcome as { kind: string }).kind, 'published', JSON.stringify(ended.outcome));
      assert.equal(state.calls.filter(({ path: at }) => at.endsWith('/initialize')).length, 1);
      assert.equal(state.posts.length, 1);
      const [upload] = [...state.uploads.values()];
      // Two kills: each costs at most the segments of one checkpoint, and those that left before the kill struck.
      const again = (upload?.received ?? 0) - bytes;
      assert.ok(again >= 0 && again <= 2 * 8 * segment, `${again} bytes were sent again`);
      assert.ok(ended.grownBytes <= maxGrownBytes, `grew by ${ended.grownBytes} bytes`);
    } finally {
      world.network.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
