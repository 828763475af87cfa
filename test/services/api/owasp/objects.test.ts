import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { operations } from '#services/api/operations.ts';
import { composer, tomorrow } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { presignBody, uploaded } from '#test/support/uploads.ts';

/**
 * OWASP API1 for ids in bodies: every member of every body that names a resource. `test/e2e/tenancy.test.ts` has ids in
 * paths and filters, cursors and keys.
 */

const nowhere = '00000000-0000-4000-8000-000000000000';

interface Owned {
  readonly client: string;
  readonly account: string;
  readonly post: string;
  readonly draft: string;
  readonly target: string;
  readonly campaign: string;
  readonly upload: string;
  readonly webhook: string;
}
type Kind = keyof Owned;

const kinds: Readonly<Record<string, Kind>> = {
  ...{ clientId: 'client', clientIds: 'client', accountIds: 'account', targetIds: 'target', postIds: 'post' },
  ...{ mediaIds: 'upload', mediaIdsOverride: 'upload', coverMediaId: 'upload', assetId: 'upload' },
  ...{ campaignId: 'campaign', postId: 'post', accountId: 'account' },
};

interface Schema {
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
/** Pointers of the members that hold a uuid, lists as `*`. */
const idsIn = (schema: Schema | undefined, at = ''): readonly string[] =>
  schema === undefined
    ? []
    : [
        ...(schema.format === 'uuid' ? [at] : []),
        ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) => idsIn(member, `${at}/${name}`)),
        ...idsIn(schema.items, `${at}/*`),
        ...(schema.anyOf ?? []).flatMap((one) => idsIn(one, at)),
      ];
const pointersOf = ({ body }: Operation): readonly string[] => [...new Set(idsIn(body as Schema | undefined))];

/** A copy with the id at the pointer; what is missing on the way is made. */
const withId = (value: unknown, parts: readonly string[], id: string): unknown => {
  const [part, ...rest] = parts;
  if (part === undefined) return id;
  if (part === '*') {
    const [first, ...others] = (value ?? []) as readonly unknown[];
    return [withId(first, rest, id), ...others];
  }
  const known = (value ?? {}) as Readonly<Record<string, unknown>>;
  return { ...known, [part]: withId(known[part], rest, id) };
};

suite('OWASP API1: ids in bodies', (t) => {
  let world: World;
  let mine: Owned;
  /** Of another workspace's twin, and of the live workspace of the caller. */
  let others: readonly Owned[];
  let console: Caller;
  let strangers: readonly { readonly by: Caller; readonly owned: Owned }[];

  const furnish = async (by: Caller, connected: boolean): Promise<Owned> => {
    const ok = async (asked: Promise<Answered>): Promise<Answered> => {
      const answer = await asked;
      assert.equal(answer.status, 200, answer.text);
      return answer;
    };
    const client = connected
      ? await composer(world, ['x'], { by })
      : {
          clientId: (await ok(by.post('/clients', { name: 'Live', type: 'brand' }))).data.id,
          accounts: { x: nowhere },
        };
    const { clientId } = client;
    const body = { clientId, content: 'Ours', targets: { mode: 'group', clientId } };
    const schedule = { type: 'at', scheduledAt: tomorrow() };
    const draft = await ok(by.post('/posts', { ...body, schedule, saveDraft: true }));
    const post = connected ? await ok(by.post('/posts', { ...body, schedule })) : draft;
    const targets = (post.data.targets ?? []) as readonly { readonly id: string }[];
    const hook = { url: 'https://hooks.agency.example/in', events: ['post.*'] };
    return {
      ...{ client: clientId, account: client.accounts.x ?? nowhere, post: post.data.id, draft: draft.data.id },
      ...{ target: targets[0]?.id ?? nowhere, upload: String((await uploaded(by)).data.assetId) },
      campaign: (await ok(by.post('/campaigns', { name: 'Ours', clientId }))).data.id,
      webhook: (await ok(by.post('/webhooks', hook))).data.id,
    };
  };

  t.before(async () => {
    world = await startWorld();
    const { tester: stranger } = await world.agency('Southern Cross');
    mine = await furnish(world.tester, true);
    strangers = [
      { by: stranger, owned: await furnish(stranger, true) },
      { by: world.owner, owned: await furnish(world.owner, false) },
    ];
    others = strangers.map(({ owned }) => owned);
    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    const { workspaceId, memberId } = world;
    console = world.callerWith((await mintSession(sessions, { workspaceId, memberId, mode: 'test' })).token);
    await world.settled();
  });
  t.after(() => world?.close());

  const bodyOf = ({ id }: Operation, pointer: string): unknown => {
    const { client, account, post, target } = mine;
    const composed = {
      ...{ clientId: client, content: 'Mine', schedule: { type: 'at', scheduledAt: tomorrow() } },
      // The mode decides which of its members are read.
      targets: {
        mode: pointer.includes('/targets/clientId') ? 'group' : 'selection',
        clientId: client,
        accountIds: [account],
      },
      variants: [{ platform: 'x' }],
      ...(pointer.includes('/thread/') ? { thread: { segments: [{ content: 'One.' }, { content: 'Two.' }] } } : {}),
    };
    const { clientId: _client, ...replacement } = composed;
    const bodies: Readonly<Record<string, unknown>> = {
      ...{
        createPost: composed,
        previewPost: composed,
        updatePost: replacement,
        bulkCreatePosts: { posts: [composed] },
      },
      ...{
        revisePost: { content: 'Revised' },
        createCampaign: { name: 'Mine' },
        refreshAnalytics: { accountIds: [account] },
      },
      createApiKey: { name: 'Mine', mode: 'test', scopes: ['posts.read'], expiresAt: tomorrow() },
      bulkPostTargets: {
        ...{ action: 'reschedule', shiftMinutes: 5 },
        ...(pointer.startsWith('/select') ? { select: { from: tomorrow(), to: tomorrow() } } : { targetIds: [target] }),
      },
      ...{ assignCampaignPosts: { postIds: [post] }, unassignCampaignPosts: { postIds: [post] } },
      createSimulation: {
        ...{ clientId: client, cadence: [{ perDay: 3 }] },
        ...(pointer.startsWith('/recycling') ? { recycling: [{ postId: post, everyDays: 30 }] } : {}),
        ...(pointer.startsWith('/shift') ? { shift: { campaignId: mine.campaign, days: 1 } } : {}),
      },
      ...{ presignMedia: presignBody(), registerMedia: { assetId: mine.upload } },
      importMedia: { url: 'https://cdn.agency.example/a.jpg' },
      registerWebhook: { url: 'https://hooks.agency.example/in', events: ['post.*'] },
      updateWebhook: { description: 'Mine' },
    };
    return bodies[id];
  };
  const pathOf = ({ id, path }: Operation): string => {
    const own = path.startsWith('/webhooks') ? mine.webhook : path.startsWith('/campaigns') ? mine.campaign : mine.post;
    return path.replace('{id}', id === 'updatePost' ? mine.draft : own);
  };
  const snapshot = async (): Promise<readonly string[]> => {
    const seen: string[] = [];
    for (const { by, owned } of strangers) {
      for (const path of ['clients/client', 'posts/post', 'posts/draft', 'campaigns/campaign', 'webhooks/webhook']) {
        const [where, kind] = path.split('/') as [string, Kind];
        const { status, headers, text } = await by.get(`/${where}/${owned[kind]}`);
        assert.equal(status, 200, text);
        seen.push(`${headers.get('etag')} ${JSON.stringify(JSON.parse(text).data)}`);
      }
    }
    return seen;
  };

  t('an id of another tenant in any member of any body is answered exactly as an unknown one', async () => {
    const before = await snapshot();
    let asked = 0;
    for (const operation of operations) {
      for (const pointer of pointersOf(operation)) {
        const parts = pointer.slice(1).split('/');
        const kind = kinds[parts.filter((part) => part !== '*').at(-1) ?? ''];
        assert.ok(kind !== undefined, `${operation.id}: what does ${pointer} name?`);
        const body = bodyOf(operation, pointer);
        assert.ok(body !== undefined, `${operation.id} names ids and is not asked here`);
        const by = operation.firstParty === true ? console : world.tester;
        const send = (id: string) =>
          by.request(operation.method, pathOf(operation), { body: withId(body, parts, id), key: randomUUID() });
        const plain = ({ status, body: answered }: Answered, id: string): string =>
          `${status} ${JSON.stringify(answered)
            .replaceAll(id, '<id>')
            // Each call is about a time of its own, and jitter is drawn.
            .replace(/"correlationId":"[^"]*"|"\d{4}-\d\d-\d\dT[^"]*"|"(?:jitterSeconds|revision)":\d+/g, '')}`;
        const unknown = await send(nowhere);
        for (const owned of others) {
          const id: string = owned[kind];
          if (id === nowhere) continue;
          const where = `${operation.id} ${pointer}`;
          const foreign = await send(id);
          assert.equal(plain(foreign, id), plain(unknown, nowhere), where);
          asked += 1;
        }
        // A draft may name an account that is connected later.
        const isOfDraft = operation.id === 'updatePost';
        const answeredAsUnknown =
          isOfDraft ||
          unknown.status === 422 ||
          /unknown|not_found|validation_failed|"valid":false|"results":\[\]/.test(unknown.text);
        assert.ok(answeredAsUnknown, `${operation.id} ${pointer}: ${unknown.text}`);
      }
    }
    assert.ok(asked > 60, String(asked));
    assert.deepEqual(await snapshot(), before);
  });
});
