import { Type } from 'typebox';
import { type EventOf, Instant, Personal, Role, Uuid } from './common.ts';
import { maxEmail, maxPersonName } from './person.ts';

/**
 * A link by which one person becomes a member of a workspace, or takes the place of a member that an operator made. Its
 * address and name are sealed with a data key of the invitation's own.
 */

export const teaminviteEvents = {
  TeamInviteCreated: Type.Object({
    inviteId: Uuid,
    /** The member that the person becomes. */
    memberId: Uuid,
    /** Null: the person with the link chooses an address. */
    email: Personal(maxEmail),
    name: Personal(maxPersonName),
    role: Role,
    expiresAt: Instant,
    /** Version of the secret key from which its token is derived. */
    keyVersion: Type.String({ minLength: 1, maxLength: 20 }),
  }),
  TeamInviteAccepted: Type.Object({ personId: Uuid }),
  TeamInviteRevoked: Type.Object({}),
} as const;
export type TeamInviteEvent = EventOf<typeof teaminviteEvents>;
