import { Type } from 'typebox';
import { maxIntervalMinutes } from '#schemas/cadence.ts';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';

/** GET /accounts/{id}/cadence: how often an account may publish. */

const Source = OpenEnum(
  'CadenceSource',
  ['platform', 'workspace', 'observed'],
  'platform: what the documents of the network say; observed: what the network reports of this account, instead of that; workspace: what the operator set.',
);

const CadenceWindow = Named(
  'CadenceWindow',
  Type.Object(
    {
      name: Type.String({ description: 'The length of the window, in words.', examples: ['24 hours'] }),
      limit: Type.Integer({
        minimum: 0,
        description:
          'What the account may publish within any such stretch of time: targets, where the workspace sets it; else calls, of which a thread takes one for each segment, and a first comment on x one more.',
      }),
      used: Type.Integer({ minimum: 0, description: 'What it has published within the last such stretch.' }),
      remaining: Type.Integer({ minimum: 0, description: 'What is left now.' }),
      resetsAt: said(Nullable(Instant), 'When the next of them is free again; null: none is used.'),
      source: said(Source, 'Who sets the limit.'),
    },
    { description: 'A limit of how often an account may publish.' },
  ),
);

export const AccountCadence = Named(
  'AccountCadence',
  Type.Object(
    {
      accountId: said(Uuid, 'The account.'),
      platform: said(Platform, 'Its network.'),
      windows: Type.Array(CadenceWindow, {
        description:
          'The limits of the account. An account of the sandbox shows the windows of the network that it imitates, and is not held to them.',
      }),
      minIntervalMinutes: said(
        Nullable(Type.Integer({ minimum: 1, maximum: maxIntervalMinutes })),
        'Minutes between two of its targets; null: any.',
      ),
      nextFreeAt: said(
        Nullable(Instant),
        'The earliest time from now on at which one more target would break no limit; null: a limit leaves none.',
      ),
    },
    { description: 'How often an account may publish.' },
  ),
);
