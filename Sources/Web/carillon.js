/** The version of this file's programming interface. */
export const VERSION = "0.1.0";
