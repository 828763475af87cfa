import { type Static, Type } from 'typebox';
import { overrideRules, rulesOf } from '#domain/platforms/index.ts';
import { type Platform, roles } from '#schemas/common.ts';
import type { Agency as AgencySchema } from '#schemas/http/agency.ts';
import type { Quota as QuotaSchema } from '#schemas/http/quota.ts';
import { reads, tool } from '../tool.ts';
import { Args, joined, Mode, Next, Nullable, Platforms } from '../words.ts';
import { localTime } from './post-words.ts';

/** Where an agent is and as whom it acts, and what it may set on each network. */

type Agency = Static<typeof AgencySchema>;
type Quota = Static<typeof QuotaSchema>;

export const whoami = tool({
  name: 'whoami',
  title: 'Workspace, time and rights',
  description:
    'Tells the workspace, the time now and its zone, whether this is the sandbox or live, the role behind this credential and what is left of the month. Use it before “tomorrow” or “next week”.',
  scopes: ['agency.read'],
  hints: reads,
  input: Args({}),
  output: Type.Object({
    mode: Mode,
    workspace: Type.String(),
    role: Type.Enum([...roles]),
    now: Type.String(),
    timezone: Type.String(),
    clientIds: Nullable(Type.Array(Type.String()), 'The clients that it is limited to; null: all.'),
    quota: Nullable(
      Type.Object({
        limit: Nullable(Type.Integer()),
        used: Type.Integer(),
        remaining: Nullable(Type.Integer()),
        resetsAt: Type.String(),
      }),
      'Null: not to be seen with this credential.',
    ),
    nextStep: Next,
  }),
  run: async (call) => {
    const { data: agency } = await call.invoke<Agency>('getAgency');
    const { mode, role, clientIds } = call;
    const mayAsk = call.may('accounts.read') && clientIds === null;
    const read = mayAsk ? (await call.invoke<Quota>('getQuota')).data : null;
    const quota =
      read === null ? null : { limit: read.limit, used: read.used, remaining: read.remaining, resetsAt: read.resetsAt };
    const now = new Date(call.now()).toISOString();
    const { name: workspace, timezone } = agency;
    const nextStep = 'find_clients has the clients; each client and account may have a zone of its own.';
    const text = joined(
      `${JSON.stringify(workspace)} (${mode}), as ${role}.`,
      `Now it is ${now}, ${localTime(now, timezone)}.`,
      quota === null
        ? null
        : `Quota of the month: ${quota.remaining === null ? 'no limit' : `${quota.remaining} targets left until ${quota.resetsAt}`}.`,
      nextStep,
    );
    return {
      text,
      data: {
        mode,
        workspace,
        role,
        now,
        timezone,
        clientIds: clientIds === null ? null : [...clientIds],
        quota,
        nextStep,
      },
    };
  },
});

const settingsOf = (platform: Platform) =>
  Object.entries(overrideRules(platform)).map(([key, rule]) => ({
    ...{ platform, key },
    type: rule.type,
    values: rule.type === 'enum' ? [...rule.values] : null,
    default: rule.default ?? null,
    required: rule.required !== undefined && rule.required.fallback !== true,
    onlyAs: rule.uses === undefined ? null : [...rule.uses],
    about: rule.about,
  }));

export const networkSettings = tool({
  name: 'network_settings',
  title: 'Settings of networks',
  description:
    'Lists what can be set on these networks in `settings` of a variant: each key, its values and what it does. Use it before you send a setting: a key that the network does not know does nothing.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({ platforms: Platforms('The networks.') }),
  output: Type.Object({
    mode: Mode,
    settings: Type.Array(
      Type.Object({
        platform: Type.String(),
        key: Type.String(),
        type: Type.String(),
        values: Nullable(Type.Array(Type.String())),
        default: Nullable(Type.Union([Type.String(), Type.Boolean()])),
        required: Type.Boolean(),
        onlyAs: Nullable(Type.Array(Type.String()), 'Counts for these kinds of post alone.'),
        about: Type.String(),
      }),
    ),
    nextStep: Next,
  }),
  run: async (call, { platforms }) => {
    const asked = [...new Set(platforms)];
    const settings = asked.flatMap(settingsOf);
    const nextStep = 'Send them as settings in a variant of this network: preview_post checks them.';
    const lines = settings.map(({ platform, key, type, values, required, onlyAs, about }) =>
      [
        `- ${platform} ${key} (${type}${required ? ', required' : ''}${onlyAs === null ? '' : `, only ${onlyAs.join(' or ')}`}): ${about}`,
        values === null ? '' : ` One of ${values.join(', ')}.`,
      ].join(''),
    );
    const text = joined(`Settings of ${asked.map((one) => rulesOf(one).name).join(', ')}:`, ...lines, nextStep);
    return { text, data: { mode: call.mode, settings, nextStep } };
  },
});
