(CNN) -- Story 0 begins

  It "goes on"  
and ends.

@highlight

First point 0

@highlight

Second”
