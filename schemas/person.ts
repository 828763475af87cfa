import { Type } from 'typebox';
import { type EventOf, Instant, Personal, Uuid } from './common.ts';

/**
 * A person belongs to the installation, not to a workspace, and has a data key of its own. Hashes, keys and secrets of a
 * person are rows, never events: an event says only that one was set.
 */

/** Longest e-mail address (RFC 5321, section 4.5.3.1). */
export const maxEmail = 254;
export const maxPersonName = 200;
/** What a person calls a passkey, in characters. */
export const maxPasskeyName = 60;

/** How a person set a password. */
export const passwordCauses = ['joined', 'changed', 'reset'] as const;
export type PasswordCause = (typeof passwordCauses)[number];

/** Who says that the address of a person is theirs: a link, an invitation that came to the address, or an operator. */
export const emailProofs = ['link', 'invitation', 'operator'] as const;
export type EmailProof = (typeof emailProofs)[number];

export const personEvents = {
  PersonRegistered: Type.Object({ personId: Uuid, email: Personal(maxEmail), name: Personal(maxPersonName) }),
  PasswordSet: Type.Object({ by: Type.Enum(passwordCauses) }),
  /** Before it, somebody else may have registered the address. */
  EmailProven: Type.Object({ by: Type.Enum(emailProofs) }),
  PasskeyAdded: Type.Object({ passkeyId: Uuid }),
  PasskeyRemoved: Type.Object({ passkeyId: Uuid }),
  /** From now on a password alone does not sign the person in. */
  SecondFactorEnabled: Type.Object({}),
  SecondFactorDisabled: Type.Object({}),
  RecoveryCodesReplaced: Type.Object({}),
  RecoveryCodeUsed: Type.Object({}),
  /** The data key of the person is destroyed after this event. */
  PersonErased: Type.Object({}),
} as const;
export type PersonEvent = EventOf<typeof personEvents>;

/** The claim on an e-mail address: its stream is named by an HMAC of the address. */
export const personemailEvents = {
  EmailClaimed: Type.Object({ personId: Uuid }),
  EmailReleased: Type.Object({ personId: Uuid }),
} as const;
export type PersonEmailEvent = EventOf<typeof personemailEvents>;

export const signInWays = ['password', 'passkey', 'recovery_code', 'link', 'joined'] as const;
export type SignInWay = (typeof signInWays)[number];
export const sessionEnds = ['signed_out', 'revoked', 'password_set', 'erased'] as const;
export type SessionEnd = (typeof sessionEnds)[number];

/** A session of a person in the console. Its secret, device and last use are a row. */
export const sessionEvents = {
  SessionStarted: Type.Object({ personId: Uuid, by: Type.Enum(signInWays), expiresAt: Instant }),
  SessionRevoked: Type.Object({ reason: Type.Enum(sessionEnds) }),
} as const;
export type SessionEvent = EventOf<typeof sessionEvents>;
