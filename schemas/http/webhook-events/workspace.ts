import { Type } from 'typebox';
import { Nullable, Platform, Uuid } from '#schemas/common.ts';
import { OpenEnum, said } from '#schemas/published.ts';
import { workspaceEvents } from '#schemas/workspace.ts';
import { example, noClient, onceFor, publicEvent } from './common.ts';

/** Events of the workspace itself. Its sandbox twin has the same events of its own. */

const ids = { workspaceId: said(Uuid, 'Id of the workspace, or of its sandbox twin.'), ...noClient };
const exampleIds = { workspaceId: example.workspaceId, clientId: null };

const { name, timezone } = workspaceEvents.WorkspaceProfileChanged.properties;

export const workspacePublic = {
  'workspace.updated': publicEvent(
    'An operator changed the name or the zone of the workspace.',
    Type.Object({
      ...ids,
      name: said(name, 'Its name from now on.'),
      timezone: said(timezone, 'IANA zone in which the days of its figures begin, from now on.', {
        examples: ['Europe/Berlin'],
      }),
    }),
    { ...exampleIds, name: 'Studio North', timezone: 'Europe/Berlin' },
  ),
  'cadence.changed': publicEvent(
    'An operator set how often the accounts of the workspace may publish.',
    Type.Object({
      ...ids,
      platform: said(
        Nullable(Platform),
        'The network of the accounts; null: all networks that have no rule of their own.',
      ),
      minIntervalMinutes: said(
        Nullable(Type.Integer({ minimum: 1 })),
        'Minutes between two targets of one account; null: any.',
        { examples: [30] },
      ),
      perDay: said(
        Nullable(Type.Integer({ minimum: 0 })),
        'Targets of one account within any 24 hours; null: as many as it likes. With both null, the rule has ended.',
        { examples: [20] },
      ),
    }),
    { ...exampleIds, platform: 'x', minIntervalMinutes: 30, perDay: 20 },
  ),
  'network.version_ending': publicEvent(
    `A network on which the workspace has accounts ends the version of its API that this installation asks for; an operator sets a newer one. While none is set after its end, targets of the network wait, and none fails for it. ${onceFor('version and stage')}`,
    Type.Object({
      ...ids,
      platform: said(Platform, 'The network.'),
      version: said(Type.String({ maxLength: 200 }), 'The version, in the network’s words.', { examples: ['202511'] }),
      endsAt: said(
        Nullable(Type.String({ maxLength: 30 })),
        'The day on which it ends; null: the network has ended it, and had named no day.',
        { examples: ['2026-11-16'] },
      ),
      stage: said(
        OpenEnum(
          'NetworkVersionStage',
          ['ends_in_90_days', 'ends_in_30_days', 'ended'],
          'How near the end is. `ended`: the network answers the version no longer.',
        ),
        'How near the end is.',
      ),
    }),
    { ...exampleIds, platform: 'linkedin', version: '202511', endsAt: '2026-11-16', stage: 'ends_in_30_days' },
  ),
  'quota.changed': publicEvent(
    'An operator set how many targets the workspace may publish in one month.',
    Type.Object({
      ...ids,
      limit: said(
        Nullable(Type.Integer({ minimum: 0 })),
        'Targets that may be due in one month of its zone, from now on; null: as many as it likes.',
        { examples: [500] },
      ),
    }),
    { ...exampleIds, limit: 500 },
  ),
};
