import { randomBytes } from 'node:crypto';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { within } from '#contracts/base/pause.ts';
import {
  type InboundCall,
  maxInboundBytes,
  type NetworkInbox,
  type NetworkNotice,
} from '#contracts/ports/network-inbox.ts';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { accountsOfPerson, askedTargetsOf, type PersonAt } from '#projections/queries/person-accounts.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { endRest } from '#runtime/work/leases.ts';
import { deletionOf, type KeptKind, keepNotice } from '#runtime/work/network-notices.ts';
import type { Platform } from '#schemas/common.ts';
import { Allowance, type Allowances } from '#services/api/call/allowances.ts';
import type { CallPatience, Deps } from '#services/api/call/deps.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { readBody } from '#services/api/http/rest.ts';
import { page, timeOf } from '#services/shell/page.ts';
import { forPeople, show, show404, tooLate } from './links.ts';

/**
 * Calls that networks make by themselves, and the page by which a person follows the deletion of their data. A call that the
 * network did not sign gets the answer of an address that is not there, whatever is wrong with it; one that it signed gets the
 * same answer whether we know the person or not.
 */

type Origin = Pick<PersonAt, 'network' | 'platform'>;
type Notice<Kind extends NetworkNotice['kind']> = NetworkNotice & { readonly kind: Kind };

const callOf = async (ctx: Context, method: InboundCall['method']): Promise<InboundCall> => {
  const query = new URLSearchParams(ctx.querystring);
  const { headers } = ctx.req;
  return {
    ...{ method, topic: ctx.params.topic ?? null },
    query: Object.fromEntries([...new Set(query.keys())].map((name) => [name, query.get(name) ?? ''])),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
    ),
    body: method === 'GET' ? Buffer.alloc(0) : await readBody(ctx.req, maxInboundBytes),
  };
};

/** Networks take letters and digits alone. 48 of them: no log shows what is longer than an id. */
const newCode = (): string => randomBytes(24).toString('hex');

/** A key of the installation stands between the id and the person, whose ids anybody could try. */
const idOf = (
  { secrets }: Pick<Deps, 'secrets'>,
  { network, platform }: Origin,
  { kind, person, at }: Notice<KeptKind>,
) => secrets.mac('fingerprints', `network notice\n${[network, platform, kind, at, person].join('\n')}`, secrets.oldest);

const [maxAccounts, maxTargets] = [100, 100];

/**
 * What one network may say, in each process: a person who writes many comments there makes many calls here. Spent behind the
 * signature, so that no stranger uses it up; a network repeats what gets 429.
 */
const perNetwork = { perMinute: 300, burst: 300 };

/** If we die before it, or find nothing yet, the network is asked when the rest of a target ends by itself. */
const askNow = async ({ pool }: Deps, at: PersonAt): Promise<void> => {
  const accounts = await accountsOfPerson(pool, at, null, maxAccounts);
  const targets = await askedTargetsOf(
    pool,
    accounts.map(({ id }) => id),
    maxTargets,
  );
  await endRest(pool, leaseKindOfTargets, targets);
};

/** Nothing is answered before it is kept: a network repeats what it got no answer to. @returns the codes of deletions */
const keep = async (deps: Deps, origin: Origin, notices: readonly NetworkNotice[]): Promise<readonly string[]> => {
  const codes: string[] = [];
  for (const notice of notices) {
    if (notice.kind === 'post_state') {
      await askNow(deps, { ...origin, person: notice.person });
      continue;
    }
    const code = notice.kind === 'delete_data' ? newCode() : null;
    const kept = await keepNotice(deps.pool, { ...origin, id: idOf(deps, origin, notice), notice, code });
    if (kept !== null) codes.push(kept);
  }
  faultPoint('network:after-notice');
  return codes;
};

const json = (ctx: Context, body: string): void => {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = body;
  ctx.type = 'application/json';
};

const inboxOf = ({ inboxes }: Deps, network: Origin['network'], name: string): [Platform, NetworkInbox] | null => {
  const all = inboxes?.[network] ?? {};
  return Object.hasOwn(all, name) ? [name as Platform, all[name as Platform] as NetworkInbox] : null;
};

const pathOf = (code: string): string => `/network/deletion/${code}`;

const receive =
  (
    deps: Deps,
    { allowances, patience, said }: Tools & { readonly said: Allowance },
    network: Origin['network'],
    method: InboundCall['method'],
  ): Middleware =>
  async (ctx) => {
    const state = stateOf(ctx);
    await allowances.of(state).spend(ctx, 1);
    const call = await callOf(ctx, method);
    const found = inboxOf(deps, network, String(ctx.params.platform));
    if (found === null) throw notFound('path');
    const [platform, inbox] = found;
    const verdict = inbox.verify(call, deps.clock());
    const about = { correlationId: state.correlationId, network, platform };
    if (verdict.kind === 'refused') {
      deps.logger.warn({ ...about, reason: verdict.reason }, 'a call in the name of a network was refused');
      throw notFound('path');
    }
    if (verdict.kind === 'answered') return json(ctx, verdict.body);
    await said.spend({ set: () => undefined }, `${network} ${platform}`, Math.max(1, verdict.notices.length));
    const [code] = await within(patience.callMs, keep(deps, { network, platform }, verdict.notices), tooLate);
    deps.logger.info({ ...about, notices: verdict.notices.map(({ kind }) => kind) }, 'a network called');
    // Meta's form; no other network asks for it.
    json(
      ctx,
      code === undefined ? '{}' : JSON.stringify({ url: deps.consoleUrl() + pathOf(code), confirmation_code: code }),
    );
  };

const underWay =
  'It is under way. This page says when it is done: within an hour as a rule, within two days where a post is on its way.';

/** The history keeps what it kept before: events are sealed, and stay. */
const done = `Our permission to act for you, your name and your picture are deleted, and nothing goes out to your account any more.
Who posted for you keeps a sealed history of that work; your former name in it is encrypted, and ends when they end it. What was
published stays on the network until you delete it there.`;

const deletion =
  ({ pool }: Deps, { patience }: Tools): Middleware =>
  async (ctx) => {
    const code = String(ctx.params.code);
    const found = await within(patience.callMs, deletionOf(pool, code), tooLate);
    if (found === null) return show404(ctx);
    const { receivedAt, doneAt } = found;
    const state = doneAt === null ? underWay : `It was done on ${timeOf(doneAt, 'UTC')}. ${done}`;
    const asked = `<p>You asked for it on ${timeOf(receivedAt, 'UTC')}.</p>`;
    show(ctx, 200, page('Deletion of your data', `<h1>Deletion of your data</h1>\n${asked}\n<p>${state}</p>`));
  };

interface Tools {
  readonly allowances: Allowances;
  readonly patience: CallPatience;
}

export const networkCalls = (deps: Deps, tools: Tools): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  const receiving = { ...tools, said: new Allowance(perNetwork) };
  router.get(pathOf(':code'), forPeople(deps, tools.allowances), deletion(deps, tools));
  for (const [prefix, network] of [
    ['/network/sandbox', 'sandbox'],
    ['/network', 'live'],
  ] as const) {
    router.get(`${prefix}/:platform`, receive(deps, receiving, network, 'GET'));
    router.post(`${prefix}/:platform`, receive(deps, receiving, network, 'POST'));
    router.post(`${prefix}/:platform/:topic`, receive(deps, receiving, network, 'POST'));
  }
  return router.routes() as Middleware;
};
