/**
 * How many times longer than on a quiet machine of two cores a test waits before it says that something will not come.
 * Waiting ends as soon as it comes, so this costs nothing where all is well, and a slow machine is not taken for a fault.
 */
export const patience = 3;
