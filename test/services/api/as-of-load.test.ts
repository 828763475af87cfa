import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { feedEnd } from '#projections/feed/read.ts';
import { pastOf, publishTarget, shownOf } from '#test/support/as-of.ts';
import { type Composer, composer } from '#test/support/composing.ts';
import { type Answered, startWorld, type World } from '#test/support/http.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { type Random, random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/**
 * The past, asked again of what was answered while several wrote. Each writer has a client of its own, so that between two of its
 * writes everything of that client stands still, whatever the others do meanwhile: what a caught-up GET answers then is the
 * answer as of each event up to the next write of the same writer.
 */

const writers = 4;
const roundsEach = 8;

interface Recorded {
  readonly path: string;
  readonly answer: unknown;
  /** A number of the feed, or an instant, of the time in which nothing of it was written. */
  readonly asOf: number | string;
}

interface Post {
  readonly id: string;
  readonly approvalId: string | null;
  readonly targets: readonly { readonly id: string }[];
}

suite('the past of what was answered under load', { drawn: true, timeoutMs: 240_000 }, (t) => {
  const { seed } = seeded('writers');
  let world: World;
  let numbering: Numbering;
  const recorded: Recorded[] = [];
  t.before(async () => {
    world = await startWorld({ rate: { perMinute: 1_000_000, burst: 1_000_000 } });
    numbering = startNumbering(world);
  });
  t.after(async () => {
    await numbering?.stop();
    await world?.close();
  });

  const twin = () => testTwinIdOf(world.workspaceId);
  const done = (answered: Answered): Answered => {
    assert.ok(answered.status < 300, answered.text);
    return answered;
  };
  /** A step that does not fit what the thing has become is refused, and changes nothing. */
  const tried = (answered: Answered): Answered => {
    assert.ok(answered.status < 300 || [404, 409, 422].includes(answered.status), answered.text);
    return answered;
  };

  /** The things of one writer, and what it may do to them next. */
  class Writer {
    readonly #own: Composer;
    readonly #choice: Random;
    readonly #things = new Set<string>();
    readonly #posts: Post[] = [];
    readonly #campaigns: string[] = [];
    readonly #hooks: string[] = [];

    constructor(own: Composer, choice: Random) {
      this.#own = own;
      this.#choice = choice;
      this.#things.add(`/clients/${own.clientId}`);
      for (const id of Object.values(own.accounts)) this.#things.add(`/accounts/${id}`);
    }

    get paths(): readonly string[] {
      const lists = ['posts', 'post-targets', 'accounts', 'campaigns', 'approvals'];
      return [...this.#things, ...lists.map((noun) => `/${noun}?limit=100&clientId=${this.#own.clientId}`)];
    }

    async write(): Promise<void> {
      const [post, campaign, hook] = [this.#posts, this.#campaigns, this.#hooks].map((of) =>
        of.length === 0 ? undefined : this.#choice.pick<Post | string>(of),
      ) as [Post | undefined, string | undefined, string | undefined];
      const steps = [
        ...[() => this.#newPost(campaign), () => this.#newPost(campaign), () => this.#client()],
        ...(campaign === undefined ? [() => this.#newCampaign()] : this.#toCampaign(campaign)),
        ...(hook === undefined ? [() => this.#newHook()] : this.#toHook(hook)),
        ...(post === undefined ? [] : this.#toPost(post)),
      ];
      await this.#choice.pick(steps)();
    }

    async #newPost(campaignId: string | undefined): Promise<void> {
      const more = campaignId === undefined ? {} : { campaignId };
      const isDraft = this.#choice.int(0, 4) === 0;
      const body = this.#own.body({
        content: `Text ${randomUUID()}`,
        ...more,
        ...(isDraft ? { saveDraft: true } : {}),
      });
      const answered = tried(await world.tester.post('/posts', body));
      if (answered.status !== 200) return;
      const post = answered.data as unknown as Post;
      this.#posts.push(post);
      this.#things.add(`/posts/${post.id}`);
      if (post.approvalId !== null) this.#things.add(`/approvals/${post.approvalId}`);
      for (const { id } of post.targets) this.#things.add(`/post-targets/${id}`);
    }

    #toPost({ id, approvalId, targets }: Post) {
      const { tester } = world;
      const target = targets[0]?.id;
      const later = new Date(Date.now() + this.#choice.int(5, 50) * 86_400_000).toISOString();
      const decision = this.#choice.pick(['approve', 'request-changes']);
      return [
        async () => void tried(await tester.post(`/posts/${id}/revise`, { content: `Revised ${randomUUID()}` })),
        async () => void tried(await tester.delete(`/posts/${id}`)),
        ...(approvalId === null
          ? []
          : [
              async () =>
                void tried(await tester.post(`/approvals/${approvalId}/${decision}`, { comment: 'So it is.' })),
            ]),
        ...(target === undefined
          ? []
          : [
              async () => void tried(await tester.post(`/post-targets/${target}/reschedule`, { scheduledAt: later })),
              () => publishTarget(world, twin(), target, id),
            ]),
      ];
    }

    async #client(): Promise<void> {
      const approvalRequired = this.#choice.int(0, 1) === 0;
      const name = `Renamed ${randomUUID()}`;
      done(await world.tester.patch(`/clients/${this.#own.clientId}`, { name, approvalRequired }));
    }

    async #newCampaign(): Promise<void> {
      const { data } = done(await world.tester.post('/campaigns', { name: 'Spring', clientId: this.#own.clientId }));
      this.#campaigns.push(data.id);
      this.#things.add(`/campaigns/${data.id}`);
    }

    #toCampaign(id: string) {
      return [
        async () => void tried(await world.tester.patch(`/campaigns/${id}`, { name: `Summer ${randomUUID()}` })),
        async () => {
          this.#campaigns.splice(this.#campaigns.indexOf(id), 1);
          done(await world.tester.delete(`/campaigns/${id}`));
        },
      ];
    }

    async #newHook(): Promise<void> {
      const body = { url: 'https://example.com/hook', events: ['post.*'] };
      const { data } = done(await world.tester.post('/webhooks', body));
      this.#hooks.push(data.id);
      this.#things.add(`/webhooks/${data.id}`);
    }

    #toHook(id: string) {
      return [
        async () => void tried(await world.tester.post(`/webhooks/${id}/rotate-secret`, {})),
        async () => void tried(await world.tester.patch(`/webhooks/${id}`, { events: ['post.published'] })),
        async () => {
          this.#hooks.splice(this.#hooks.indexOf(id), 1);
          done(await world.tester.delete(`/webhooks/${id}`));
        },
      ];
    }
  }

  const record = async (writer: Writer, isInstant: boolean): Promise<void> => {
    await world.settled();
    await numbering.numbered();
    const { size } = await feedEnd(world.pool, twin());
    const { rows } = await world.pool.query<{ now: Date }>('select clock_timestamp() as now');
    const asOf = isInstant ? (rows[0]?.now.toISOString() ?? '') : size;
    for (const path of writer.paths) recorded.push({ path, answer: shownOf(await world.tester.get(path)), asOf });
  };

  t('what several recorded beside each other is answered as of then', async () => {
    const all: Writer[] = [];
    for (let n = 0; n < writers; n += 1) {
      all.push(new Writer(await composer(world, ['x', 'bluesky']), random(seed + n)));
    }
    await Promise.all(
      all.map(async (writer) => {
        for (let round = 0; round < roundsEach; round += 1) {
          await writer.write();
          await writer.write();
          await record(writer, round % 3 === 2);
        }
      }),
    );
    const wrong: string[] = [];
    const kinds = new Set<string>();
    for (const { path, answer, asOf } of recorded) {
      kinds.add(`${path.split(/[/?]/)[1]}${path.includes('?') ? ' list' : ''}`);
      const then = shownOf(await world.tester.get(pastOf(path, asOf)));
      try {
        assert.deepEqual(then, answer);
      } catch (error) {
        wrong.push(`${path} as of ${asOf}: ${(error as Error).message}`);
      }
    }
    assert.deepEqual(wrong.slice(0, 3), [], `${wrong.length} of ${recorded.length} answers differ`);
    const answers = new Map<string, Set<string>>();
    for (const { path, answer } of recorded) {
      answers.set(path, (answers.get(path) ?? new Set()).add(JSON.stringify(answer)));
    }
    const changed = [...answers.values()].filter(({ size }) => size > 1).length;
    assert.ok(changed > 3 * writers, `${changed} of ${answers.size} things and lists had several answers`);
    for (const noun of ['clients', 'accounts', 'posts', 'post-targets']) assert.ok(kinds.has(noun), noun);
  });
});
