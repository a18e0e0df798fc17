/* What this program was built from. */
#include "cli/options/build.h"

#include "build_info.h"

const gb_build gb_cli_build = {GB_BUILD_COMMIT, GB_BUILD_COMPILER, GB_BUILD_FLAGS, GB_BUILD_TYPE};
