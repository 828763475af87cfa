import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Random } from '#test/support/seed.ts';
import type { ActionName } from './load.ts';

/**
 * Every fault point between two durable effects, the process that dies there, and the actions that lead there. A name
 * in the source that this list lacks fails a test.
 */
export interface Point {
  readonly name: string;
  readonly role: RoleName;
  /** Actions that bring a process to the fault point, in turn. */
  readonly by: readonly ActionName[];
}

export const roleNames = [
  'api',
  'projections',
  'outcomes',
  'publisher-1',
  'publisher-2',
  'webhooks-1',
  'webhooks-2',
  'media',
  'insights',
  'reports',
  'relay',
  'rebuild',
] as const;
export type RoleName = (typeof roleNames)[number];

/** Those that die at the points of their role; roles that share their work share their points. */
export const mortals: readonly (readonly RoleName[])[] = [
  ['publisher-1', 'publisher-2'],
  ...roleNames.filter((name) => !name.startsWith('publisher')).map((name) => [name]),
];

const at = (role: RoleName, name: string, ...by: readonly ActionName[]): Point => ({ name, role, by });

/**
 * In the order in which each role meets them. Of roles that share a lane only one may run: the others get no record.
 */
export const points: readonly Point[] = [
  at('api', 'fanout:before-targets', 'now'),
  at('api', 'fanout:between-targets', 'now'),
  at('api', 'birth:after-append', 'draft'),
  at('api', 'request:after-accept', 'draft'),
  at('api', 'request:after-effects', 'move'),
  at('api', 'bulk:between-posts', 'bulk'),
  at('api', 'bulk:between-targets', 'shift'),
  at('api', 'revise:after-append', 'mend', 'revise'),
  at('api', 'fanout:between-intents', 'revise', 'mend', 'withdraw'),
  at('api', 'campaign:between-posts', 'campaign'),
  at('api', 'campaign:after-shift', 'campaign'),
  at('api', 'campaign:between-targets', 'campaign'),
  at('api', 'campaign:before-completion', 'campaign'),
  at('api', 'approval:after-decision', 'approve'),
  at('api', 'delete:after-append', 'discard', 'withdraw'),
  at('api', 'client:after-claim', 'race'),
  at('api', 'client:after-append', 'race'),
  at('api', 'client:after-release', 'rename'),
  at('api', 'externalref:after-claim', 'refer'),
  at('api', 'externalref:after-append', 'refer'),
  at('api', 'invite:between-use-and-connect', 'connect'),
  at('projections', 'consume:before-commit', 'now'),
  at('projections', 'consume:after-commit', 'now'),
  at('projections', 'analytics:after-insert', 'now', 'refresh'),
  at('projections', 'analytics:before-recount', 'now', 'refresh'),
  at('projections', 'analytics:after-recount', 'now', 'refresh'),
  at('outcomes', 'outcomes:after-intent', 'disconnect', 'archive'),
  at('outcomes', 'fanout:between-intents', 'archive', 'disconnect'),
  at('outcomes', 'outcomes:between-disconnected', 'disconnect'),
  at('outcomes', 'outcomes:after-append', 'now'),
  at('outcomes', 'consume:before-commit', 'now'),
  at('outcomes', 'consume:after-commit', 'now'),
  at('publisher-1', 'publisher:before-claim', 'now'),
  at('publisher-1', 'publisher:after-claim', 'now'),
  at('publisher-1', 'publisher:before-boundary', 'now'),
  at('publisher-1', 'publisher:after-boundary', 'now'),
  at('publisher-1', 'sandbox.boundary_appended', 'now'),
  at('publisher-1', 'sandbox.post_accepted', 'now'),
  at('publisher-1', 'publisher:after-ask', 'processed'),
  at('publisher-2', 'publisher:after-takeover', 'orphan'),
  at('publisher-2', 'publisher:after-requeue', 'limited'),
  at('publisher-2', 'publisher:after-call', 'now'),
  at('publisher-2', 'publisher:after-outcome', 'thread'),
  at('publisher-2', 'publisher:after-hand-over', 'native'),
  at('publisher-2', 'publisher:after-handed-over', 'native'),
  at('publisher-2', 'publisher:before-reschedule', 'native'),
  at('publisher-2', 'publisher:after-reschedule', 'native'),
  at('publisher-2', 'publisher:after-time-change', 'native'),
  at('publisher-2', 'publisher:before-revise', 'native'),
  at('publisher-2', 'publisher:after-revise', 'native'),
  at('publisher-2', 'publisher:after-content-change', 'native'),
  at('publisher-2', 'publisher:before-undo', 'native'),
  at('publisher-2', 'sandbox.post_undone', 'native'),
  at('publisher-2', 'publisher:after-undo', 'native'),
  at('publisher-2', 'publisher:after-undone', 'native'),
  at('publisher-2', 'sandbox.container_created', 'contained'),
  at('publisher-2', 'sandbox.container_checkpointed', 'contained'),
  at('publisher-2', 'publisher:after-comment-start', 'commented'),
  at('publisher-2', 'sandbox.comment_accepted', 'commented'),
  at('publisher-2', 'publisher:after-comment-call', 'commented'),
  at('publisher-2', 'publisher:after-comment', 'commented'),
  at('webhooks-1', 'consume:before-effect', 'now'),
  at('webhooks-1', 'dispatcher:before-mint', 'now'),
  at('webhooks-1', 'consume:before-commit', 'hear'),
  at('webhooks-1', 'consume:after-commit', 'now'),
  at('webhooks-1', 'sender:answered', 'now'),
  at('webhooks-1', 'webhook-jobs:before-commit', 'hear'),
  at('webhooks-1', 'sender:claimed', 'now'),
  at('webhooks-1', 'sender:recorded', 'now'),
  at('media', 'media:after-store-blob', 'upload'),
  at('media', 'media:after-stored', 'upload'),
  at('media', 'media:after-probed', 'upload'),
  at('media', 'media:after-planned', 'upload'),
  at('media', 'media:after-rendition-put', 'upload'),
  at('media', 'media:after-rendition', 'upload'),
  at('media', 'media:before-finish', 'upload'),
  at('media', 'media:after-finish', 'upload'),
  at('media', 'fill:after-request', 'filled'),
  at('insights', 'consume:before-commit', 'now'),
  at('insights', 'consume:after-commit', 'now'),
  at('insights', 'insights:leased', 'now'),
  at('insights', 'insights:after-fetch', 'now'),
  at('insights', 'insights:after-observed', 'now'),
  at('insights', 'insights:after-profile', 'restyle'),
  at('insights', 'insights:after-tried', 'now'),
  at('insights', 'insights:after-refreshed', 'refresh'),
  at('insights', 'insights:after-gone-observed', 'gone'),
  at('insights', 'insights:after-gone', 'gone'),
  at('reports', 'consume:before-commit', 'report'),
  at('reports', 'consume:after-commit', 'report'),
  at('reports', 'reports:after-put', 'report'),
  at('reports', 'reports:after-outcome', 'report'),
  at('reports', 'reports:after-request', 'planned'),
  at('relay', 'relay:after-send', 'now'),
  at('rebuild', 'rebuild:before-consume', 'now'),
  at('rebuild', 'rebuild:before-switch', 'now'),
  at('rebuild', 'rebuild:before-drop', 'now'),
];

/** Fault points that no load reaches, and the test that kills a process there. */
export const pointsElsewhere: Readonly<Record<string, string>> = {
  'admin:between-publish-and-removal': 'test/services/admin/network-check.test.ts',
  'analytics:before-record': 'test/projections/analytics/tables.test.ts',
  'analytics:between-tables': 'test/projections/analytics/tables.test.ts',
  'credentials.answered': 'test/infra/postgres/credentials.test.ts',
  'credentials.destroyed': 'test/infra/postgres/credentials.test.ts',
  'credentials.kept': 'test/infra/postgres/credentials.test.ts',
  'credentials.lapsed': 'test/infra/postgres/credentials.test.ts',
  'credentials.leased': 'test/infra/postgres/credentials.test.ts',
  'credentials.stored': 'test/infra/postgres/credentials.test.ts',
  'rebuild:all-noted': 'test/services/admin/admin.test.ts',
  'rebuild:all-opened': 'test/services/admin/admin.test.ts',
  'rebuild:all-read': 'test/services/admin/admin.test.ts',
  'rebuild:indexed': 'test/services/admin/admin.test.ts',
  'shape:after-switch': 'test/projections/shapes.test.ts',
  'shape:before-drop': 'test/projections/shapes.test.ts',
  'schema.file': 'test/infra/postgres/schema.test.ts',
  'invite:between-credentials-and-connect': 'test/e2e/live-networks.test.ts',
  'connect:after-attempt': 'test/e2e/live/x.ts',
  'connect:after-choice': 'test/e2e/live/telegram.ts',
  'connect:after-code': 'test/e2e/live/telegram.ts',
  'connect:after-finish': 'test/e2e/live/x.ts',
  'connect:after-take': 'test/e2e/live/x.ts',
  'connect:between-choices': 'test/e2e/live/telegram.ts',
  'outcomes:after-revocation': 'test/e2e/live-networks.test.ts',
  'connect-codes.spoken': 'test/services/outcomes/listening.test.ts',
  'connect-codes.taken': 'test/services/outcomes/listening.test.ts',
  'publisher:after-step-start': 'test/services/publisher/after-steps.test.ts',
  'sandbox.step_accepted': 'test/services/publisher/after-steps.test.ts',
  'publisher:after-step-call': 'test/services/publisher/after-steps.test.ts',
  'publisher:after-step': 'test/services/publisher/after-steps.test.ts',
  'pushed-posts.comments': 'test/services/outcomes/listening.test.ts',
  'pushed-posts.discussions': 'test/services/outcomes/listening.test.ts',
  'pushed-posts.reactions': 'test/services/outcomes/listening.test.ts',
  'outcomes:after-loss': 'test/services/outcomes/listening.test.ts',
  'checkpoint:after-key': 'test/services/admin/audit.test.ts',
  'audit:verify-kept': 'test/services/admin/audit.test.ts',
  'consume:before-unpark': 'test/services/runtime/consuming/consume.test.ts',
  'fanout:after-skips': 'test/services/runtime/eventing/deaths.test.ts',
  'fanout:before-skips': 'test/services/runtime/eventing/deaths.test.ts',
  'outcomes:before-lapse': 'test/services/outcomes/credentials.test.ts',
  'outcomes:after-lapse': 'test/services/outcomes/credentials.test.ts',
  'network:after-notice': 'test/services/api/deaths.test.ts',
  'outcomes:after-notice': 'test/services/outcomes/notices.test.ts',
  'outcomes:before-notice-done': 'test/services/outcomes/notices.test.ts',
  'outcomes:after-overdue': 'test/services/outcomes/overdue.test.ts',
  'outcomes:after-restored': 'test/services/outcomes/restores-deaths.test.ts',
  'publisher:after-find': 'test/services/outcomes/restores-deaths.test.ts',
  'publisher:after-restored': 'test/services/outcomes/restores-deaths.test.ts',
  'publisher:after-absence': 'test/services/publisher/absence.test.ts',
  'media:after-blobs-gone': 'test/services/media/deaths.test.ts',
  'media:after-lane': 'test/services/media/deaths.test.ts',
  'media:after-removed': 'test/services/media/deaths.test.ts',
  'quota:after-reserve': 'test/services/api/quota-deaths.test.ts',
  'sandbox:after-move': 'test/services/api/deaths.test.ts',
  'quota:before-give-back': 'test/services/api/quota-deaths.test.ts',
  'campaign:before-give-back': 'test/services/api/quota-deaths.test.ts',
  'quota:after-fence': 'test/services/outcomes/quotas.test.ts',
  'quota:after-set': 'test/services/outcomes/quotas.test.ts',
  'recycle:before-cancels': 'test/services/outcomes/recycles.test.ts',
  'recycle:after-replace': 'test/services/outcomes/recycles.test.ts',
  'recycle:after-copy': 'test/services/outcomes/recycles.test.ts',
  'recycle:after-record': 'test/services/outcomes/recycles.test.ts',
  'reports:after-place': 'test/services/api/deaths.test.ts',
  'webhook:before-rotation': 'test/services/api/deaths.test.ts',
  'reports:before-rest': 'test/services/reports/deaths.test.ts',
  'person:after-claim': 'test/services/auth/deaths.test.ts',
  'person:after-events': 'test/services/auth/deaths.test.ts',
  'person:after-row': 'test/services/auth/deaths.test.ts',
  'team-invite:after-accept': 'test/services/auth/deaths.test.ts',
  'team-invite:after-join': 'test/services/auth/deaths.test.ts',
  'session:after-start': 'test/services/auth/deaths.test.ts',
  'session:after-end': 'test/services/auth/deaths.test.ts',
  'password:after-row': 'test/services/auth/deaths.test.ts',
  'export:after-close': 'test/services/admin/move.test.ts',
  'import:after-begin': 'test/services/admin/move.test.ts',
  'import:after-keys': 'test/services/admin/move.test.ts',
  'import:after-file': 'test/services/admin/move.test.ts',
  'import:after-append': 'test/services/admin/move.test.ts',
  'import:after-events': 'test/services/admin/move.test.ts',
  'import:after-settled': 'test/services/admin/move.test.ts',
  'erase:after-begin': 'test/services/admin/move.test.ts',
  'erase:before-note': 'test/services/admin/move.test.ts',
  'erase:between-events': 'test/services/admin/move.test.ts',
  'erase:between-tables': 'test/services/admin/move.test.ts',
  'second-factor:after-row': 'test/services/auth/deaths.test.ts',
  'oauth:after-given': 'test/services/auth/oauth/deaths.test.ts',
  'oauth:after-consume': 'test/services/auth/oauth/deaths.test.ts',
  'oauth:after-revoked': 'test/services/auth/oauth/deaths.test.ts',
  'oauth:after-client-deleted': 'test/services/auth/oauth/deaths.test.ts',
};

const root = path.resolve(import.meta.dirname, '../..');

/** Names in the source, as `faultPoint('…')` or `faultPoint?.('…')`. */
export const pointsInSource = (): readonly string[] => {
  const names = globSync(['services/**/*.ts', 'infra/**/*.ts', 'projections/**/*.ts'], { cwd: root }).flatMap((file) =>
    [...readFileSync(path.join(root, file), 'utf8').matchAll(/\bfaultPoint(?:\?\.)?\(([^)]*)\)/g)].flatMap(
      ([, inside = '']) => {
        const [, name] = /^'([^']+)'$/.exec(inside) ?? [];
        // The declaration itself takes a parameter; any other call must name its fault point literally.
        return name === undefined ? (inside === 'name: string' ? [] : [`${file}: ${inside}`]) : [name];
      },
    ),
  );
  return [...new Set(names)].sort();
};

/** Of the points at which a test of one service kills too, a run of the suite takes one in so many; `make chaos` takes all. */
const oneIn = 6;

/**
 * What a run of the suite takes: all points that no test of a service names beside a death, and of each role some of the
 * others, different ones each time.
 */
export const pointsOfRun = (random: Pick<Random, 'shuffle'>): readonly Point[] => {
  const texts = globSync(['test/services/**/*.test.ts', 'test/projections/**/*.test.ts'], { cwd: root })
    .map((file) => readFileSync(path.join(root, file), 'utf8'))
    .filter((text) => /SIGKILL|died|dies/.test(text));
  const shared = points.filter(({ name }) => texts.some((text) => text.includes(`'${name}'`)));
  const left = mortals.flatMap((names) => {
    const own = random.shuffle(shared.filter(({ role }) => names.includes(role)));
    return own.slice(Math.ceil(own.length / oneIn));
  });
  return points.filter((one) => !left.includes(one));
};

/** A loop over a list that is written down there: its variable, the list, and what is done with each. */
const loops = /\n( +)for \(const \[?(\w+)[^\n]*? of \[(\n.*?\n\1|[^\n]*)\](?: as const)?\) \{(.*?)\n\1\}/gs;

/** Loops over rows that a run draws, as loops over the whole list. */
const undrawn = (text: string): string =>
  text.replaceAll(/ of rowsOfRun\('[^'\n]*', (\w+), [^\n]*\) \{/g, (loop, name: string) => {
    const list = new RegExp(`\\bconst ${name} = \\[(.*?)\\](?: as const)?;`, 's').exec(text)?.[1];
    return list === undefined ? loop : ` of [${list.replaceAll(/\n\s*/g, ' ')}]) {`;
  });

/**
 * Whether that test starts a process which dies there: it arms one with the point, or a loop over points arms one with
 * each.
 */
export const isDiedAtIn = (name: string, file: string): boolean => {
  const text = undrawn(readFileSync(path.join(root, file), 'utf8'));
  const isArmed = new RegExp(
    `\\b(?:child|dies|arm|startApi)\\((?:[^()]*, )?'${name}'[,)]|\\bPOSTLINE_FAULT: '${name}'`,
  ).test(text);
  const isListed = [...text.matchAll(loops)].some(
    ([, , variable, table = '', body = '']) =>
      table.includes(`'${name}'`) && new RegExp(`\\b(?:child|dies|startApi)\\((?:[^;]*, )?${variable}\\b`).test(body),
  );
  return (isArmed || isListed) && /'SIGKILL'|\.died\(|\bdies\(|\bdue\.arm\(/.test(text);
};
